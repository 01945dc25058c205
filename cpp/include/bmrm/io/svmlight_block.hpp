// The grammar of one svmlight line, and the parser of a block of whole lines:
//   label[,label...] [qid:N] index:value ... [# comment]
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "bmrm/io/number.hpp"

namespace bmrm::io {

inline constexpr auto nowhere = static_cast<std::size_t>(-1);
// The most features: vectors of so many float64 numbers can still be addressed.
inline constexpr auto widest = (std::int64_t{1} << 60) - 1;

enum class Base { automatic, zero, one };
enum class Labels { automatic, one, many };

struct SvmlightOptions {
  Base base = Base::automatic;
  Labels labels = Labels::automatic;
  std::optional<std::int64_t> n_features;  // by default what the largest index asks for
  int n_threads = 1;
  std::size_t block_bytes = std::size_t{1} << 20;
};

// Where in the text something is wrong, and what.
struct Fault {
  std::size_t offset = nowhere;
  std::string message;
  explicit operator bool() const { return offset != nowhere; }
};

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
inline bool is_break(char c) { return is_blank(c) || c == '\n' || c == '#'; }
inline bool is_group(const char* p) { return p[0] == 'q' && p[1] == 'i' && p[2] == 'd' && p[3] == ':'; }
inline const char* line_end(const char* p, const char* end) {
  return static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
}

// The token at p in quotes, cut when long, with whatever is not plain text spelled out.
inline std::string quoted(const char* p) {
  constexpr std::size_t longest = 40;
  constexpr char hex[] = "0123456789abcdef";
  std::string token = "'";
  for (std::size_t n = 0; !is_break(*p); ++p, ++n) {
    if (n == longest) return token + "...'";
    const auto byte = static_cast<unsigned char>(*p);
    if (byte >= 0x20 && byte < 0x7f) {
      token += *p;
    } else {
      token += {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
    }
  }
  return token + "'";
}

// Where a block's results go: room for all it can hold, at its own place in the common arrays.
template <class Index, class Value>
struct Room {
  Index* indices;
  Value* values;
  Index* row_ends;  // counted from the start of the block, like label_ends
  double* labels;
  std::int64_t* label_ends;
  std::int64_t* groups;
};

// What is known of a block when it has been parsed.
struct Findings {
  std::size_t n_rows = 0;
  std::size_t n_entries = 0;
  std::size_t n_labels = 0;
  std::int64_t top = -1;  // the largest index, as stored
  bool saw_zero = false;
  bool many_labels = false;
  bool too_wide = false;                // an index does not fit Index: nothing else here counts
  std::size_t with_group = nowhere;     // the first line with a qid
  std::size_t without_group = nowhere;  // the first line without
  Fault fault;                          // parsing stopped here
  Fault at_limit;                       // the first index that is wrong only if counting starts at zero
};

template <class Index, class Value>
class BlockParser {
 public:
  // `origin` is the offset of `begin` in the whole text; the byte before `end` is a line feed.
  BlockParser(const char* begin, const char* end, std::size_t origin, const SvmlightOptions& options,
              const Room<Index, Value>& room)
      : begin_(begin), end_(end), origin_(origin), options_(options), room_(room) {
    // Indices are stored as if they started at one until the whole file has been seen.
    shift_ = options.base == Base::zero ? 0 : 1;
    before_ = options.base == Base::automatic ? -2 : -1;
    n_features_ = options.n_features.value_or(widest);
    limit_ = n_features_ - (options.base == Base::automatic ? 1 : 0);
    // The number of features must fit as well, and it is larger by one.
    narrow_ = static_cast<std::int64_t>(std::numeric_limits<Index>::max()) - 1;
    if (sizeof(Index) < sizeof(std::int64_t)) limit_ = std::min(limit_, narrow_ + 1);
  }

  Findings parse() {
    const char* p = begin_;
    while (p != nullptr && p < end_) p = line(p);
    return std::move(found_);
  }

 private:
  // Each step returns where the next begins, or nullptr when the block ends in a fault.
  const char* line(const char* p) {
    while (is_blank(*p)) ++p;
    if (*p == '\n') return p + 1;
    if (*p == '#') return line_end(p, end_) + 1;
    const std::size_t start = offset(p);
    p = labels(p);
    if (p != nullptr) p = group(p, start);
    if (p != nullptr) p = entries(p);
    if (p == nullptr) return nullptr;
    room_.label_ends[found_.n_rows] = static_cast<std::int64_t>(found_.n_labels);
    room_.row_ends[found_.n_rows] = static_cast<Index>(found_.n_entries);
    ++found_.n_rows;
    return p;
  }

  const char* labels(const char* p) {
    const char* const start = p;
    Real label = scan_real(p);
    if (is_group(p) || (label.end != p && *label.end == ':')) {
      found_.many_labels = true;
      return options_.labels != Labels::one ? p : fail(p, "no label before " + quoted(p) + "; expected a number");
    }
    for (;; label = scan_real(p)) {
      if (label.end == p || !(is_break(*label.end) || *label.end == ',')) return bad_label(start, p);
      if (!std::isfinite(label.value)) return bad_label(start, p);
      room_.labels[found_.n_labels++] = label.value;
      p = label.end;
      if (*p != ',') return p;
      found_.many_labels = true;
      if (options_.labels == Labels::one) {
        return fail(start, "several labels " + quoted(start) + "; expected one number (or multilabel=True)");
      }
      ++p;
    }
  }

  const char* group(const char* p, std::size_t start) {
    while (is_blank(*p)) ++p;
    if (!is_group(p)) {
      found_.without_group = std::min(found_.without_group, start);
      return p;
    }
    const Whole number = scan_whole(p + 4);
    if (number.end == p + 4 || !is_break(*number.end) || !number.fits) {
      return fail(p, "malformed " + quoted(p) + "; expected qid: and a whole number from 0 to 2^63 - 1");
    }
    found_.with_group = std::min(found_.with_group, offset(p));
    room_.groups[found_.n_rows] = static_cast<std::int64_t>(number.value);
    return number.end;
  }

  const char* entries(const char* p) {
    Index* index = room_.indices + found_.n_entries;
    Value* value = room_.values + found_.n_entries;
    Index* const first = index;
    const std::uint64_t shift = shift_;
    const std::int64_t limit = limit_;
    std::int64_t previous = before_;
    for (;;) {
      while (is_blank(*p)) ++p;
      if (*p == '\n' || *p == '#') break;
      const Whole key = scan_whole(p);
      const auto stored = static_cast<std::int64_t>(key.value - shift);
      const bool plain = key.end != p && *key.end == ':' && key.fits && stored > previous && stored < limit;
      if (!plain && !odd_key(p, key, previous)) return nullptr;
      const Real real = scan_real(key.end + 1);
      const auto rounded = static_cast<Value>(real.value);
      if (real.end == key.end + 1 || !is_break(*real.end) || !std::isfinite(rounded)) {
        return bad_value(key.end + 1);
      }
      *index++ = static_cast<Index>(stored);
      *value++ = rounded;
      previous = stored;
      p = real.end;
    }
    found_.n_entries += static_cast<std::size_t>(index - first);
    found_.saw_zero |= index != first && static_cast<std::uint64_t>(*first) + shift == 0;
    found_.top = std::max(found_.top, previous);
    return *p == '\n' ? p + 1 : line_end(p, end_) + 1;
  }

  // An index that is not plainly right: true when it may stand.
  bool odd_key(const char* p, const Whole& key, std::int64_t previous) {
    if (key.end == p || *key.end != ':') return bad_key(p, key);
    const auto stored = static_cast<std::int64_t>(key.value - shift_);
    const bool is_last = key.fits && stored > previous && stored == n_features_ - 1;
    if (is_last && found_.at_limit) return true;  // frequent where the last feature is
    const std::string name = "index " + std::string(p, std::min<std::ptrdiff_t>(key.end - p, 40));
    if (!key.fits || stored >= widest) {
      return fail(p, name + " is too large; expected at most 2^60 - " + (shift_ == 0 ? "2" : "1")) != nullptr;
    }
    if (stored < 0 && options_.base == Base::one) {
      return fail(p, name + " in a file that counts from 1; expected 1 or more (or zero_based=True)") != nullptr;
    }
    if (stored <= previous) {
      return fail(p, name + " after " + std::to_string(static_cast<std::uint64_t>(previous) + shift_) +
                         "; indices must increase within a line") != nullptr;
    }
    if (stored > narrow_ && sizeof(Index) < sizeof(std::int64_t)) {
      found_.too_wide = true;
      return false;
    }
    const std::string limit = " is out of range for n_features=" + std::to_string(n_features_);
    if (stored >= n_features_) {
      return fail(p, name + limit + "; expected at most " + std::to_string(last_index())) != nullptr;
    }
    if (!found_.at_limit) {
      found_.at_limit = {offset(p), name + limit + "; expected at most " + std::to_string(n_features_ - 1) +
                                        ", for this file counts from 0: it has an index 0"};
    }
    return true;
  }

  bool bad_key(const char* p, const Whole& key) {
    const std::string expected = "; expected index:value";
    if (is_group(p)) {
      fail(p, "misplaced " + quoted(p) + "; a qid stands once, right after the label");
    } else if (key.end != p && is_break(*key.end)) {
      fail(p, "no colon in " + quoted(p) + expected);
    } else if (*p == '-' && is_digit(p[1])) {
      fail(p, "negative index in " + quoted(p) + expected + " with an index of 0 or more");
    } else {
      fail(p, "malformed " + quoted(p) + binary_hint(p) + expected);
    }
    return false;
  }

  const char* bad_label(const char* start, const char* p) {
    return fail(start, std::string(is_unbounded<double>(p) ? "label out of range " : "malformed label ") +
                           quoted(start) + binary_hint(start) +
                           "; expected a finite number, or several with commas between");
  }

  const char* bad_value(const char* p) {
    return fail(p, std::string(is_unbounded<Value>(p) ? "value out of range " : "malformed value ") + quoted(p) +
                       binary_hint(p) + "; expected a finite number");
  }

  // True for a number too large to represent, and for infinity and not-a-number by name.
  template <class T>
  static bool is_unbounded(const char* p) {
    const Real real = scan_real(p);
    if (real.end != p) return !std::isfinite(static_cast<T>(real.value));
    if (*p == '+' || *p == '-') ++p;
    const auto is_word = [p](const char* word) {
      for (int i = 0; i < 3; ++i) {
        if ((p[i] | 0x20) != word[i]) return false;
      }
      return true;
    };
    return is_word("inf") || is_word("nan");
  }

  static const char* binary_hint(const char* p) {
    for (; !is_break(*p); ++p) {
      if (*p == '\0') return " (a NUL byte: this looks like a binary file, not svmlight text)";
    }
    return "";
  }

  std::int64_t last_index() const { return n_features_ - (shift_ == 0 ? 1 : 0); }

  std::size_t offset(const char* p) const { return origin_ + static_cast<std::size_t>(p - begin_); }

  const char* fail(const char* p, std::string message) {
    found_.fault = {offset(p), std::move(message)};
    return nullptr;
  }

  const char* begin_;
  const char* end_;
  std::size_t origin_;
  const SvmlightOptions& options_;
  Room<Index, Value> room_;
  std::uint64_t shift_;  // unsigned, so that a number beyond all limits wraps
  std::int64_t before_;  // smaller than every index a line may start with
  std::int64_t limit_;   // indices from here on need a second look
  std::int64_t narrow_;  // the largest index that Index holds
  std::int64_t n_features_;
  Findings found_;
};

}  // namespace bmrm::io
