// The quadratic program's kernel on its own, for the sanitizers: adds, removes, warm starts, odd matrices.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <vector>

#include "bmrm/kernel/simplex_qp_state.hpp"

namespace {

using Vector = std::vector<double>;

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::exit(1);
}

// The vectors behind H, one per variable, and their columns in C.
struct Planes {
  std::vector<Vector> a;
  std::vector<Vector> columns;

  double product(std::size_t i, std::size_t j) const {
    double sum = 0.0;
    for (std::size_t k = 0; k < a[i].size(); ++k) sum += a[i][k] * a[j][k];
    return sum;
  }

  void add_to(bmrm::ActiveSetQp& qp, Vector vector, Vector column) {
    a.push_back(std::move(vector));
    columns.push_back(std::move(column));
    Vector h;
    for (std::size_t i = 0; i < a.size(); ++i) h.push_back(product(a.size() - 1, i));
    qp.add(h, columns.back());
  }
};

void check_optimal(const Planes& planes, const bmrm::ActiveSetQp& qp, const Vector& b, const Vector& c) {
  const Vector &x = qp.x(), &nu = qp.multipliers();
  for (std::size_t i = 0; i < c.size(); ++i) {
    double sum = -c[i];
    for (std::size_t j = 0; j < x.size(); ++j) sum += planes.columns[j][i] * x[j];
    check(std::abs(sum) < 1e-13, "C x = c");
  }
  for (std::size_t j = 0; j < x.size(); ++j) {
    check(x[j] >= 0.0, "x >= 0");
    double r = -b[j], scale = std::abs(b[j]);
    for (std::size_t i = 0; i < x.size(); ++i) {
      r += planes.product(j, i) * x[i];
      scale += std::sqrt(planes.product(j, j) * planes.product(i, i)) * x[i];
    }
    for (std::size_t i = 0; i < c.size(); ++i) {
      r -= planes.columns[j][i] * nu[i];
      scale += std::abs(planes.columns[j][i] * nu[i]);
    }
    check(r >= -1e-12 * scale, "reduced costs");
    check(x[j] == 0.0 || r <= 1e-12 * scale, "complementarity");
  }
}

Vector random_vector(std::mt19937_64& random, std::size_t n, double scale) {
  std::normal_distribution<double> normal;
  Vector v(n);
  for (auto& value : v) value = scale * normal(random);
  return v;
}

// Grows a problem plane by plane, now and then a duplicate or a zero one, and drops what is not in use.
void grow_and_shrink(double noise, std::size_t q) {
  std::mt19937_64 random(7);
  Vector c(q, 0.0), b;
  c[0] = 1.0;
  bmrm::ActiveSetQp qp(c);
  Planes planes;
  const Vector center = random_vector(random, 12, 1.0);
  for (std::size_t t = 0; t < 80; ++t) {
    Vector a = random_vector(random, 12, noise), column(q, 0.0);
    for (std::size_t k = 0; k < a.size(); ++k) a[k] += center[k] * (noise < 1.0 ? 1.0 : 0.0);
    if (t % 11 == 5) a = planes.a.back();
    if (t % 17 == 9) a.assign(12, 0.0);
    column[0] = 1.0;
    if (q > 1) column[1] = t == 0 ? 0.0 : random_vector(random, 1, 1.0)[0];
    planes.add_to(qp, a, column);
    b.push_back(random_vector(random, 1, noise)[0]);
    if (t == 0) qp.set_start(Vector{1.0});
    qp.solve(b, 1e-14, 10000);
    check_optimal(planes, qp, b, c);
    if (t % 20 != 19) continue;
    std::vector<std::int64_t> unused;
    for (std::size_t j = b.size(); j-- > 0;) {
      if (qp.x()[j] > 0.0) continue;
      unused.insert(unused.begin(), static_cast<std::int64_t>(j));
      const auto at = static_cast<std::ptrdiff_t>(j);
      planes.a.erase(planes.a.begin() + at);
      planes.columns.erase(planes.columns.begin() + at);
      b.erase(b.begin() + at);
    }
    qp.remove(unused);
    const Vector state = qp.packed();
    auto twin = bmrm::ActiveSetQp::unpacked(bmrm::Unpacker(state));
    for (auto& value : b) value *= 1.5;
    qp.solve(b, 1e-14, 10000);
    check_optimal(planes, qp, b, c);
    check(twin.solve(b, 1e-14, 10000) == qp.x() && twin.multipliers() == qp.multipliers(), "goes on from its state");
  }
}

template <class Error, class Action>
void check_throws(Action action, const char* what) {
  try {
    action();
  } catch (const Error&) {
    return;
  }
  check(false, what);
}

// Whatever a state is cut down or changed to: an error, or a program, but never an index out of range.
void odd_states() {
  bmrm::ActiveSetQp qp(Vector{1.0});
  for (std::size_t k = 0; k < 3; ++k) qp.add(Vector(k + 1, 1.0), Vector{1.0});
  qp.set_start(Vector{0.5, 0.0, 0.5});
  const Vector state = qp.packed();
  for (std::size_t n = 0; n < state.size(); ++n) {
    const Vector cut(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(n));
    check_throws<std::invalid_argument>([&] { bmrm::ActiveSetQp::unpacked(bmrm::Unpacker(cut)); }, "state cut off");
    for (const double other : {-1.0, 0.5, 2.0, 7.0, 1e300, std::nan("")}) {
      Vector changed = state;
      changed[n] = other;
      try {
        bmrm::ActiveSetQp::unpacked(bmrm::Unpacker(changed)).solve(Vector{1.0, 2.0, 3.0}, 1e-14, 100);
      } catch (const std::exception&) {
      }
    }
  }
}

void refusals() {
  bmrm::ActiveSetQp qp(Vector{1.0});
  qp.add(Vector{2.0}, Vector{1.0});
  check_throws<std::invalid_argument>([&] { qp.solve(Vector{0.0}, 1e-14, 10); }, "no start");
  check_throws<std::invalid_argument>([&] { qp.set_start(Vector{0.5}); }, "infeasible start");
  check_throws<std::invalid_argument>([&] { qp.add(Vector{1.0}, Vector{1.0}); }, "length of h");
  qp.set_start(Vector{1.0});
  check_throws<std::invalid_argument>([&] { qp.remove(std::vector<std::int64_t>{0}); }, "positive removal");
  check_throws<std::invalid_argument>([&] { qp.remove(std::vector<std::int64_t>{3}); }, "index out of range");
  qp.add(Vector{0.0, 0.0}, Vector{0.0});
  check_throws<std::runtime_error>([&] { qp.solve(Vector{0.0, 1.0}, 1e-14, 100); }, "unbounded");
}

}  // namespace

int main() {
  for (const double noise : {1.0, 1e-3, 1e-7}) {
    for (const std::size_t q : {1, 2}) grow_and_shrink(noise, q);
  }
  refusals();
  odd_states();
  return 0;
}
