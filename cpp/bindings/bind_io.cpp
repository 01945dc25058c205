#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <variant>

#include "arrays.hpp"
#include "bmrm/io/svmlight.hpp"

namespace nb = nanobind;

namespace bmrm::py {
namespace {

template <class T>
nb::object give_buffer(io::Buffer<T>&& buffer) {
  const std::size_t size = buffer.size();
  T* data = buffer.release();
  nb::capsule owner(data, [](void* p) noexcept { std::free(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner));
}

template <class Value>
nb::tuple parse(const In<std::uint8_t>& text, const io::SvmlightOptions& options) {
  const std::string_view bytes(reinterpret_cast<const char*>(text.data()), text.size());
  io::SvmlightResult<Value> result;
  try {
    nb::gil_scoped_release release;
    result = io::parse_svmlight<Value>(bytes, options);
  } catch (const io::ParseError& error) {
    throw nb::value_error(error.what());
  }
  return std::visit(
      [](auto& table) {
        nb::object ends = nb::none();
        nb::object groups = nb::none();
        if (table.many_labels) ends = give_buffer(std::move(table.label_ends));
        if (table.has_groups) groups = give_buffer(std::move(table.groups));
        return nb::make_tuple(give_buffer(std::move(table.values)), give_buffer(std::move(table.indices)),
                              give_buffer(std::move(table.indptr)), table.n_features,
                              give_buffer(std::move(table.labels)), ends, groups, table.zero_based);
      },
      result);
}

// Tri-state options of the Python side: None is for the file to tell.
template <class Choice>
Choice choose(const nb::object& option, Choice automatic, Choice yes, Choice no) {
  if (option.is_none()) return automatic;
  return nb::cast<bool>(option) ? yes : no;
}

nb::tuple parse_svmlight(const In<std::uint8_t>& text, const nb::object& zero_based, const nb::object& multilabel,
                         const nb::object& n_features, bool single, int n_threads, std::size_t block_bytes) {
  io::SvmlightOptions options;
  options.base = choose(zero_based, io::Base::automatic, io::Base::zero, io::Base::one);
  options.labels = choose(multilabel, io::Labels::automatic, io::Labels::many, io::Labels::one);
  if (!n_features.is_none()) options.n_features = nb::cast<std::int64_t>(n_features);
  require(options.n_features.value_or(0) >= 0 && options.n_features.value_or(0) <= io::widest,
          "n_features must lie between 0 and 2^60 - 1");
  options.n_threads = n_threads;
  options.block_bytes = block_bytes;
  return single ? parse<float>(text, options) : parse<double>(text, options);
}

}  // namespace

void bind_io(nb::module_& m) {
  m.def("parse_svmlight", &parse_svmlight, nb::arg("text"), nb::arg("zero_based").none(), nb::arg("multilabel").none(),
        nb::arg("n_features").none(), nb::arg("single"), nb::arg("n_threads"),
        nb::arg("block_bytes") = std::size_t{1} << 20,
        nb::sig("def parse_svmlight(text: numpy.typing.NDArray[numpy.uint8], zero_based: bool | None, "
                "multilabel: bool | None, n_features: int | None, single: bool, n_threads: int, "
                "block_bytes: int = 1048576) -> tuple[typing.Any, ...]"),
        "Values, indices, indptr, n_features, labels, the ends of each row's labels (or None), groups (or None), "
        "and whether indices count from 0.");
}

}  // namespace bmrm::py
