// Segmentations of one sequence: the best, and the expected counts of all.
#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "bmrm/structured/segments.hpp"

namespace nb = nanobind;

namespace bmrm::py {

using namespace nb::literals;

namespace {

using Table = InMatrix<double>;
using Counts = OutMatrix<double>;

template <class Matrix>
void require_shape(const Matrix& matrix, std::size_t rows, std::size_t columns, const char* name) {
  if (matrix.shape(0) == rows && matrix.shape(1) == columns) return;
  require(false,
          std::string(name) + " must have the shape (" + std::to_string(rows) + ", " + std::to_string(columns) + ")");
}

SegmentScores scores_of(const Table& token, const Table& first, const Table& last, const Table& length,
                        const Table& pair) {
  const std::size_t n = token.shape(0), k = token.shape(1);
  require(n > 0 && k > 0 && length.shape(0) > 0, "a sequence has a token, a label and a length at least");
  require_shape(first, n, k, "first");
  require_shape(last, n, k, "last");
  require_shape(length, length.shape(0), k, "length");
  require_shape(pair, k, k, "pair");
  return {n, k, length.shape(0), token.data(), first.data(), last.data(), length.data(), pair.data()};
}

auto best(const Table& token, const Table& first, const Table& last, const Table& length, const Table& pair) {
  const SegmentScores scores = scores_of(token, first, last, length, pair);
  std::vector<std::int64_t> flat;
  {
    nb::gil_scoped_release release;
    for (const Segment& segment : best_segments(scores)) {
      flat.push_back(segment.start);
      flat.push_back(segment.end);
      flat.push_back(segment.label);
    }
  }
  return give(std::move(flat));
}

double expectations(const Table& token, const Table& first, const Table& last, const Table& length, const Table& pair,
                    Counts& token_out, Counts& first_out, Counts& last_out, Counts& length_out, Counts& pair_out) {
  const SegmentScores scores = scores_of(token, first, last, length, pair);
  require_shape(token_out, scores.n_tokens, scores.n_labels, "token_out");
  require_shape(first_out, scores.n_tokens, scores.n_labels, "first_out");
  require_shape(last_out, scores.n_tokens, scores.n_labels, "last_out");
  require_shape(length_out, scores.max_length, scores.n_labels, "length_out");
  require_shape(pair_out, scores.n_labels, scores.n_labels, "pair_out");
  const SegmentCounts counts{token_out.data(), first_out.data(), last_out.data(), length_out.data(), pair_out.data()};
  nb::gil_scoped_release release;
  return segment_expectations(scores, counts);
}

}  // namespace

void bind_structured_segments(nb::module_& m) {
  m.def("segments_best", &best, "token"_a, "first"_a, "last"_a, "length"_a, "pair"_a,
        "The segmentation with the largest score: start, end and label of each segment, one after the other.");
  m.def("segments_expectations", &expectations, "token"_a, "first"_a, "last"_a, "length"_a, "pair"_a, "token_out"_a,
        "first_out"_a, "last_out"_a, "length_out"_a, "pair_out"_a,
        "log of the sum of exp(score) over all segmentations; the outputs, 0 before, become expected counts.");
}

}  // namespace bmrm::py
