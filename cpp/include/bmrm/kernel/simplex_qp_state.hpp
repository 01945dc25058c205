// The quadratic program as one vector of numbers, for a file. What is left out follows from the rest or is set anew
// by each solve.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "bmrm/kernel/archive.hpp"
#include "bmrm/kernel/simplex_qp.hpp"

namespace bmrm {

inline std::vector<double> ActiveSetQp::packed() const {
  Packer to;
  to.count(rows());
  to.count(size());
  rows_.pack(to);
  for (std::size_t j = 0; j < size(); ++j) to.numbers({data_.H.row(j), j + 1});
  to.numbers(data_.C);
  kkt_.pack(to);
  for (const auto* values : {&x_, &g_, &nu_}) to.numbers(*values);
  to.number(norm_);
  to.number(violation_);
  to.count(updates_);
  to.count(optimal_);
  return to.take();
}

inline ActiveSetQp ActiveSetQp::unpacked(Unpacker from) {
  const std::size_t q = from.count(from.left()), n = from.count(from.left());
  ActiveSetQp made(from.numbers(q));
  std::vector<std::span<const double>> rows;
  for (std::size_t j = 0; j < n; ++j) rows.push_back(from.numbers(j + 1));
  for (std::size_t j = 0; j < n; ++j) made.add(rows[j], from.numbers(q));
  made.kkt_.unpack(from, made.data_);
  for (const std::size_t j : made.kkt_.support()) made.active_[j] = 1;
  made.x_ = from.vector(n);
  made.g_ = from.vector(n);
  made.nu_ = from.vector(q);
  made.norm_ = from.number();
  made.violation_ = from.number();
  made.updates_ = from.count(std::size_t{1} << 52);
  made.optimal_ = from.count(1) == 1;
  Unpacker::require(from.left() == 0);
  return made;
}

}  // namespace bmrm
