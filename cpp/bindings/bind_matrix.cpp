#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace bmrm::py {
void bind_matrix(nb::module_&) {}
}  // namespace bmrm::py
