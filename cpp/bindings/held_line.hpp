// A line term as Python sees it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "bmrm/kernel/along.hpp"

namespace bmrm::py {

// A line term together with the objects it looks at, which must outlive it.
struct HeldLine {
  std::unique_ptr<LineTerm> term;
  std::vector<nb::object> held;
};

template <class... Objects>
std::unique_ptr<HeldLine> hold(std::unique_ptr<LineTerm> term, const Objects&... objects) {
  return std::make_unique<HeldLine>(HeldLine{std::move(term), {nb::cast(objects)...}});
}

}  // namespace bmrm::py
