// The svmlight parser without Python: every cut of the text into blocks gives the same arrays and faults.
#undef NDEBUG
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "bmrm/io/number.hpp"
#include "bmrm/io/svmlight.hpp"

namespace {

using namespace bmrm::io;

// A text in memory of exactly its size, so that the sanitizer sees every read beyond it.
struct Exact {
  explicit Exact(std::string_view text) : bytes(text.begin(), text.end()) { bytes.shrink_to_fit(); }
  std::string_view view() const { return {bytes.data(), bytes.size()}; }
  std::vector<char> bytes;
};

SvmlightOptions cut(std::size_t block_bytes, int n_threads = 1) {
  SvmlightOptions options;
  options.block_bytes = block_bytes;
  options.n_threads = n_threads;
  return options;
}

// All a result has, as text, to compare runs; or the message of the error.
template <class Value = double>
std::string outcome(std::string_view text, const SvmlightOptions& options) {
  const Exact exact(text);
  try {
    const auto result = parse_svmlight<Value>(exact.view(), options);
    return std::visit(
        [](const auto& table) {
          std::string all = std::to_string(sizeof(table.indices[0])) + " " + std::to_string(table.n_features);
          for (std::size_t i = 0; i < table.indices.size(); ++i) {
            char value[40];
            std::snprintf(value, sizeof value, " %a", static_cast<double>(table.values[i]));
            all += " " + std::to_string(table.indices[i]) + value;
          }
          for (std::size_t i = 0; i < table.indptr.size(); ++i) all += " p" + std::to_string(table.indptr[i]);
          for (std::size_t i = 0; i < table.labels.size(); ++i) all += " y" + std::to_string(table.labels[i]);
          for (std::size_t i = 0; i < table.groups.size(); ++i) all += " g" + std::to_string(table.groups[i]);
          if (!table.many_labels) return all;
          for (std::size_t i = 0; i < table.label_ends.size(); ++i) {
            all += " e" + std::to_string(table.label_ends[i]);
          }
          return all;
        },
        result);
  } catch (const ParseError& error) {
    return error.what();
  }
}

double real(const std::string& text) {
  const std::string line = text + "\n";
  const Real scanned = scan_real(line.data());
  assert(scanned.end == line.data() + text.size());
  return scanned.value;
}

void test_reals_round_as_the_library_does() {
  for (const char* text : {"0",
                           "-0",
                           "1",
                           "+1",
                           "1.",
                           ".5",
                           "0.1",
                           "123.456e-7",
                           "1e22",
                           "1e23",
                           "9007199254740993",
                           "1E5",
                           "0.30000000000000004",
                           "2.2250738585072011e-308",
                           "4.9e-324",
                           "1.7976931348623157e308",
                           "1e-400",
                           "123456789012345678901234567890",
                           "0.000000000000000000000000000001",
                           "0e999999999999999999999"}) {
    const double expected = std::strtod(text, nullptr);
    const double got = real(text);
    assert(std::memcmp(&expected, &got, sizeof got) == 0);
  }
  assert(std::isinf(real("1e400")) && std::isinf(real("-1e99999999999999999999")));
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    char text[64];
    const double scale = std::pow(10.0, static_cast<int>(random() % 60) - 30);
    const double drawn = static_cast<double>(random()) * scale;
    std::snprintf(text, sizeof text, "%.*g", static_cast<int>(1 + random() % 20), drawn);
    assert(real(text) == std::strtod(text, nullptr));
  }
}

void test_whole_numbers() {
  const auto whole = [](const std::string& text) {
    const std::string line = text + "\n";
    return scan_whole(line.data());
  };
  assert(whole("9223372036854775807").fits && whole("9223372036854775807").value == 9223372036854775807U);
  assert(whole("0000000000000000000000007").fits && whole("0000000000000000000000007").value == 7);
  for (const char* text : {"9223372036854775808", "18446744073709551617", "99999999999999999999"}) {
    assert(!whole(text).fits);
  }
}

void test_every_cut_gives_the_same() {
  const std::vector<std::string> texts = {
      "1 1:0.5 3:2\n-1 2:1e-3\n",
      "# head: a, b\n\n+1 qid:7 1:1 # c: d\r\n \t\n-1\tqid:9\t2:2\t4:4\r\n0 qid:9",
      "1,2 1:1\n 2:5\n3\n qid:1\n",
      "1 0:1 5:2\n2 4:1",
      "1 1:1\n2 3:1 2:1\n3 x\n",
      "1 1:1\n2 3000000000:1\n",
      "1 1:1\n2 9223372036854775807:1\n",
      "1 0:1\n2 9223372036854775807:1\n",
      "1 qid:1 1:1\n2 1:1\n3 1:x\n",
      std::string("1 1:1\n2 \0:1\n", 13),
      "",
      "\n\n#",
  };
  for (const std::string& text : texts) {
    const std::string expected = outcome(text, cut(1 << 20));
    for (std::size_t block_bytes = 1; block_bytes < 40; ++block_bytes) {
      for (const int n_threads : {1, 3}) assert(outcome(text, cut(block_bytes, n_threads)) == expected);
    }
  }
}

void test_arrays() {
  assert(outcome("1 1:0.5 3:2\n-1 2:4\n", cut(8)) == "4 3 0 0x1p-1 2 0x1p+1 1 0x1p+2 p0 p2 p3 y1.000000 y-1.000000");
  assert(outcome("1 0:1\n-1 2:4", cut(8)) == "4 3 0 0x1p+0 2 0x1p+2 p0 p1 p2 y1.000000 y-1.000000");
  assert(outcome("1 3000000000:1\n", cut(8)) == "8 3000000000 2999999999 0x1p+0 p0 p1 y1.000000");
  assert(outcome("2,3\n 1:1\n", cut(8)) == "4 1 0 0x1p+0 p0 p0 p1 y2.000000 y3.000000 e2 e2");
  assert(outcome<float>("1 1:1e39\n", cut(8)).find("value out of range '1e39'") != std::string::npos);
}

void test_faults_that_only_the_whole_file_shows() {
  SvmlightOptions options = cut(4, 2);
  options.n_features = 3;
  assert(outcome("1 3:1\n", options).starts_with("4 3"));
  assert(outcome("1 3:1\n1 3:1\n1 0:1\n", options).starts_with("line 1, column 3: index 3 is out of range"));
  assert(outcome("1 1:1\n1 4:1\n1 0:1\n", options).starts_with("line 2, column 3: index 4 is out of range"));
  assert(outcome("1 1:1\n1 qid:4\n1 x\n", options).starts_with("line 2, column 3: a qid here"));
  assert(outcome("1 qid:1\n1 1:1\n1 x\n", options).starts_with("line 2, column 1: no qid here"));
}

void test_mutations() {
  const std::string valid = "1,2 qid:3 1:0.5 3:-2e-3 # c\n qid:4 2:1.25\r\n3 qid:5 1:17 9:1e300\n";
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string text = valid;
    for (std::uint32_t n = 1 + random() % 4; n > 0 && !text.empty(); --n) {
      const std::size_t at = random() % text.size();
      const char byte = "0123456789:,.#-+eq \n\r\t\0\xff"[random() % 24];
      switch (random() % 3) {
        case 0:
          text[at] = byte;
          break;
        case 1:
          text.insert(at, 1, byte);
          break;
        default:
          text.erase(at, 1 + random() % 5);
      }
    }
    assert(outcome(text, cut(1 << 20)) == outcome(text, cut(1 + random() % 30, 2)));
  }
}

}  // namespace

int main() {
  test_reals_round_as_the_library_does();
  test_whole_numbers();
  test_every_cut_gives_the_same();
  test_arrays();
  test_faults_that_only_the_whole_file_shows();
  test_mutations();
  return 0;
}
