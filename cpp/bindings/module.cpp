#include <nanobind/nanobind.h>

#include <chrono>
#include <cmath>
#include <limits>

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
void bind_joint_dual(nb::module_& m);
void bind_structured_chain(nb::module_& m);
void bind_structured_folding(nb::module_& m);
void bind_structured_segments(nb::module_& m);
}  // namespace bmrm::py

namespace {
PyObject* overdue = nullptr;  // the exception's type; the module holds it too

// True when a signal handler raised or the deadline has passed: the error then stays set and becomes the exception of
// the call.
bool has_to_stop() {
  nb::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() != 0) return true;
  if (bmrm::Steady::now() < bmrm::deadline()) return false;
  PyErr_SetString(overdue, "the deadline has passed");
  return true;
}

double seconds(bmrm::Steady::time_point at) {
  if (at == bmrm::Steady::time_point::max()) return std::numeric_limits<double>::infinity();
  return std::chrono::duration<double>(at.time_since_epoch()).count();
}

// Not `Exception`: what a user's code catches must not keep a run from ending.
void bind_deadline(nb::module_& m) {
  overdue = PyErr_NewExceptionWithDoc("bmrm._core.Overdue", "The deadline has passed.", PyExc_BaseException, nullptr);
  m.attr("Overdue") = nb::handle(overdue);
  m.def(
      "clock", [] { return seconds(bmrm::Steady::now()); }, "Return the time in seconds that deadlines are given in.");
  m.def("deadline", [] { return seconds(bmrm::deadline()); }, "Return this thread's deadline, inf if it has none.");
  m.def(
      "set_deadline",
      [](double at) {
        const auto since = std::chrono::duration<double>(at);
        bmrm::deadline() = std::abs(at) < 1e9
                               ? bmrm::Steady::time_point(std::chrono::duration_cast<bmrm::Steady::duration>(since))
                               : bmrm::Steady::time_point::max();
      },
      nb::arg("at"), "Make this thread's computations raise Overdue from that time on; inf: never.");
  m.def(
      "look",
      [] {
        if (bmrm::Steady::now() >= bmrm::deadline() && has_to_stop()) nb::raise_python_error();
      },
      "Raise Overdue if this thread's deadline has passed.");
}
}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "Compiled kernels of bmrm: products, losses, lines, the master's quadratic program, text parsing.";
  nb::set_leak_warnings(false);  // what a cache still holds when the interpreter ends is no leak
  bmrm::poll_hook() = &has_to_stop;
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const bmrm::Interrupted&) {
      if (!PyErr_Occurred()) PyErr_SetNone(PyExc_KeyboardInterrupt);
    }
  });
  bind_deadline(m);
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
  bmrm::py::bind_joint_dual(m);
  bmrm::py::bind_structured_chain(m);
  bmrm::py::bind_structured_folding(m);
  bmrm::py::bind_structured_segments(m);
}
