#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace bmrm::py {
void bind_losses(nb::module_&) {}
}  // namespace bmrm::py
