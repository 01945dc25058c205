// Checks of the data at every length, and the dual of absolute values and squares against a search on a grid.
#undef NDEBUG
#include <cassert>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "bmrm/kernel/elastic.hpp"
#include "bmrm/matrix.hpp"

namespace {

using namespace bmrm;

constexpr double kInf = std::numeric_limits<double>::infinity();

template <class Value>
void test_finite() {
  for (std::size_t n = 0; n < 70; ++n) {
    std::vector<Value> x(n, Value(-1.5));
    assert(all_finite(x.data(), n));
    for (std::size_t i = 0; i < n; ++i) {
      for (const double bad : {kInf, -kInf, std::nan("")}) {
        x[i] = static_cast<Value>(bad);
        assert(!all_finite(x.data(), n));
      }
      x[i] = std::numeric_limits<Value>::max();
    }
    assert(all_finite(x.data(), n));
  }
}

// Rows of lengths 0, 1, 2, 0, 1, 2, ... that begin anywhere.
template <class Index>
void test_indices() {
  std::vector<std::int64_t> indptr{0};
  std::vector<Index> indices;
  for (std::size_t i = 0; i < 40; ++i) {
    for (std::size_t k = 0; k < i % 3; ++k) indices.push_back(static_cast<Index>((i * 7) % 5 + k));
    indptr.push_back(static_cast<std::int64_t>(indices.size()));
  }
  bool sorted = false;
  assert(!first_out_of_range<Index>(indptr, indices, 6, sorted, 2) && sorted);
  for (std::size_t i = 2; i < 40; i += 3) {
    auto wrong = indices;
    const auto p = static_cast<std::size_t>(indptr[i]);
    wrong[p + 1] = wrong[p];
    assert(!first_out_of_range<Index>(indptr, wrong, 6, sorted, 1) && !sorted);
    for (const Index bad : {Index(-1), Index(6)}) {
      wrong[p + 1] = bad;
      const auto found = first_out_of_range<Index>(indptr, wrong, 6, sorted, 1);
      assert(found && found->row == static_cast<std::int64_t>(i));
    }
  }
  assert(!first_out_of_range<Index>(std::vector<std::int64_t>{0, 0}, std::vector<Index>{}, 0, sorted, 1) && sorted);
}

void test_signs() {
  std::vector<double> y(37, -1.0);
  y[5] = 1.0;
  assert(all_signs(y.data(), y.size()) && all_signs(y.data(), 0));
  for (const double bad : {0.0, 2.0, std::nan("")}) {
    y[36] = bad;
    assert(!all_signs(y.data(), y.size()));
  }
}

void test_dual() {
  const double lam = 0.5;
  for (const double c : {-2.0, -0.3, 0.0, 0.3, 2.0})
    for (const double u : {0.0, 1.0})
      for (const double v : {0.5, 2.0})
        for (const double lower : {-kInf, -0.25, 0.5})
          for (const double box : {kInf, 1.0}) {
            const std::vector<double> cs{c}, us{u}, vs{v}, lowers{lower}, uppers{0.75}, boxes{box};
            std::vector<double> w(1);
            const double value = elastic_dual(cs, lam, {{us}, {vs}, {lowers}, {uppers}, {boxes}}, w);
            const auto at = [&](double x) { return lam * (u * std::abs(x) + 0.5 * v * x * x) + c * x; };
            assert(std::abs(at(w[0]) - value) <= 1e-14);
            assert(w[0] >= std::max(lower, -box) && w[0] <= std::min(0.75, box));
            for (double x = std::max({lower, -box, -20.0}); x <= std::min(0.75, box); x += 1e-2)
              assert(value <= at(x) + 1e-14);
          }
  std::vector<double> w(2);
  const std::vector<double> c{1.0, 0.0}, u{0.0}, v{0.0}, lower{-kInf}, upper{kInf}, box{kInf};
  assert(elastic_dual(c, lam, {{u}, {v}, {lower}, {upper}, {box}}, w) == -kInf && w[1] == 0.0);
}

}  // namespace

int main() {
  test_finite<double>();
  test_finite<float>();
  test_indices<std::int32_t>();
  test_indices<std::int64_t>();
  test_signs();
  test_dual();
  std::puts("checks: ok");
}
