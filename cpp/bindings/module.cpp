#include <nanobind/nanobind.h>

#include "bmrm/pool.hpp"

namespace nb = nanobind;

namespace bmrm::py {
void bind_io(nb::module_& m);
void bind_qp(nb::module_& m);
void bind_vectors(nb::module_& m);
void bind_matrix(nb::module_& m);
void bind_losses(nb::module_& m);
void bind_lines(nb::module_& m);
void bind_rows(nb::module_& m);
void bind_dual(nb::module_& m);
void bind_envelope(nb::module_& m);
void bind_coordinate(nb::module_& m);
void bind_wide(nb::module_& m);
void bind_sets(nb::module_& m);
void bind_bend(nb::module_& m);
void bind_wide_dual(nb::module_& m);
void bind_structured_chain(nb::module_& m);
void bind_structured_folding(nb::module_& m);
void bind_structured_segments(nb::module_& m);
}  // namespace bmrm::py

namespace {
// True when a signal handler raised: the error then stays set and becomes the exception of the call.
bool signal_raised() {
  nb::gil_scoped_acquire lock;
  return PyErr_CheckSignals() != 0;
}
}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "Compiled kernels of bmrm: products, losses, lines, the master's quadratic program, text parsing.";
  nb::set_leak_warnings(false);  // what a cache still holds when the interpreter ends is no leak
  bmrm::poll_hook() = &signal_raised;
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const bmrm::Interrupted&) {
      if (!PyErr_Occurred()) PyErr_SetNone(PyExc_KeyboardInterrupt);
    }
  });
  bmrm::py::bind_io(m);
  bmrm::py::bind_qp(m);
  bmrm::py::bind_vectors(m);
  bmrm::py::bind_matrix(m);
  bmrm::py::bind_losses(m);
  bmrm::py::bind_lines(m);
  bmrm::py::bind_rows(m);
  bmrm::py::bind_dual(m);
  bmrm::py::bind_envelope(m);
  bmrm::py::bind_coordinate(m);
  bmrm::py::bind_wide(m);
  bmrm::py::bind_sets(m);
  bmrm::py::bind_bend(m);
  bmrm::py::bind_wide_dual(m);
  bmrm::py::bind_structured_chain(m);
  bmrm::py::bind_structured_folding(m);
  bmrm::py::bind_structured_segments(m);
}
