#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace bmrm::py {
void bind_qp(nb::module_&) {}
}  // namespace bmrm::py
