#pragma once
/// Schedules written straight from their definition (Ruefenacht, Bull, Booth 2017, section 4.2, with the garbled
/// places settled): every message as a pair of ranks, every contribution counted. Slow, and independent of the code
/// under test.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <vector>

namespace isohalo::test {

/// All messages of one stage.
struct DefinedStage {
  std::vector<std::vector<int>> sends;  ///< [rank]: to whom, in order
  std::vector<bool> replaces;           ///< [rank]: what arrives replaces its value
};

/// Follows a schedule stage by stage; `valid` is false as soon as a rule is broken.
class DefinedSchedule {
 public:
  DefinedSchedule(const std::string& text, int p) : p_(p), counts_(n(p), std::vector<std::uint64_t>(n(p))) {
    for (int r = 0; r < p; ++r) virtual_to_real_.push_back(r), counts_[n(r)][n(r)] = 1;
    std::string rest = text;
    while (valid && !rest.empty()) {
      const auto comma = rest.find(',');
      add(rest.substr(0, comma));
      if (comma != std::string::npos && comma + 1 == rest.size()) valid = false;  // an empty last stage
      rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    }
    for (int r = 0; valid && r < p; ++r)
      for (int q = 0; q < p; ++q) valid = valid && (sets_ ? counts_[n(r)][n(q)] >= 1 : counts_[n(r)][n(q)] == 1);
  }

  bool valid = true;
  std::vector<DefinedStage> stages;
  /// How often rank q's contribution is in what rank r holds at the end.
  std::uint64_t count(int r, int q) const { return counts_[n(r)][n(q)]; }

 private:
  static std::size_t n(std::int64_t i) { return static_cast<std::size_t>(i); }

  void add(const std::string& text) {
    static const std::regex form(
        "([ad])([0-9]{1,9})|([ce])([0-9]{1,9})m([0-9]{1,9})|"
        "([mn])([0-9]{1,9})g([0-9]{1,9})a([0-9]{1,9})");
    std::smatch match;
    if (!std::regex_match(text, match, form)) return void(valid = false);
    const auto number = [&](std::size_t i) { return std::stoll(match[i].str()); };
    stage_ = {std::vector<std::vector<int>>(n(p_)), std::vector<bool>(n(p_))};
    if (match[1].matched) {
      match[1] == "a" ? factor(number(2)) : disseminate(number(2));
    } else if (match[3].matched) {
      match[3] == "c" ? collapse(number(4), number(5)) : expand(number(4), number(5));
    } else {
      match[6] == "m" ? merge(number(7), number(8), number(9)) : unmerge(number(7), number(8), number(9));
    }
    if (!valid) return;
    deliver();
    stages.push_back(stage_);
  }

  void send(std::int64_t from, std::int64_t to) {
    if (to < 0 || to >= p_)
      valid = false;
    else
      stage_.sends[n(from)].push_back(static_cast<int>(to));
  }
  /// A message between virtual ranks.
  void send_virtual(std::int64_t v, std::int64_t w) {
    if (w >= count_virtual())
      valid = false;
    else
      send(virtual_to_real_[n(v)], virtual_to_real_[n(w)]);
  }
  std::int64_t count_virtual() const { return static_cast<std::int64_t>(virtual_to_real_.size()); }

  void factor(std::int64_t b) {
    if (b < 2) return void(valid = false);
    for (std::int64_t w = 0; valid && w < count_virtual(); ++w)
      for (std::int64_t i = 1; valid && i < b; ++i)
        send_virtual(w, w / (m_ * b) * (m_ * b) + (w + i * m_) % (m_ * b));
    m_ *= b;
  }

  void disseminate(std::int64_t k) {
    if (k < 2) return void(valid = false);
    sets_ = true;
    for (std::int64_t w = 0; w < count_virtual(); ++w)
      for (std::int64_t i = 1; i < std::min<std::int64_t>(k, 3 * count_virtual()); ++i) {
        const std::int64_t to = (w + i * m_) % count_virtual();
        const auto& sent = stage_.sends[n(virtual_to_real_[n(w)])];
        if (to != w && std::find(sent.begin(), sent.end(), virtual_to_real_[n(to)]) == sent.end())
          send_virtual(w, to);
      }
    m_ *= k;
  }

  void collapse(std::int64_t t, std::int64_t b) {
    if (b < 2 || t > p_ || t % b || opened_) return void(valid = false);
    opened_ = true;
    collapse_ = {t, b};
    virtual_to_real_.clear();
    for (int r = 0; r < p_; ++r)
      if (r < t && r % b != b - 1)
        send(r, r / b * b + b - 1);
      else
        virtual_to_real_.push_back(r);  // floor(r / b), or r - (t / b) (b - 1): they follow each other
  }

  void expand(std::int64_t t, std::int64_t b) {
    if (!collapse_ || collapse_->first != t || collapse_->second != b) return void(valid = false);
    collapse_.reset();
    for (int r = 0; r < t; ++r)
      if (r % b != b - 1) send(r / b * b + b - 1, r), stage_.replaces[n(r)] = true;
  }

  void merge(std::int64_t r, std::int64_t g, std::int64_t b) {
    if (b < 2 || g < 1 || r >= p_ || opened_) return void(valid = false);
    opened_ = true;
    merged_ = r;
    virtual_to_real_.clear();
    for (int q = static_cast<int>(r); q < p_; ++q) virtual_to_real_.push_back(q);
    for (std::int64_t q = 0; valid && q < r; ++q)
      for (std::int64_t i = 0; valid && i < b * m_; ++i) send(q, r + q % g * b * m_ + i);
    if (valid) factor(b);
  }

  void unmerge(std::int64_t r, std::int64_t g, std::int64_t b) {
    if (g < 1 || !merged_ || *merged_ != r) return void(valid = false);
    merged_.reset();
    factor(b);
    for (std::int64_t q = 0; valid && q < r; ++q) {
      stage_.replaces[n(q)] = true;
      for (std::int64_t w = 0; w < count_virtual(); ++w)
        if (w % g == q % g) send(virtual_to_real_[n(w)], q);
    }
  }

  void deliver() {
    auto after = counts_;
    for (int r = 0; r < p_; ++r)
      if (stage_.replaces[n(r)]) after[n(r)].assign(n(p_), 0);
    for (int from = 0; from < p_; ++from)
      for (int to : stage_.sends[n(from)])
        for (int q = 0; q < p_; ++q) after[n(to)][n(q)] += counts_[n(from)][n(q)];
    if (sets_)
      for (auto& row : after)
        for (auto& c : row) c = std::min<std::uint64_t>(c, 1);
    counts_ = after;
  }

  std::int64_t p_, m_ = 1;
  bool sets_ = false, opened_ = false;
  std::optional<std::pair<std::int64_t, std::int64_t>> collapse_;
  std::optional<std::int64_t> merged_;
  std::vector<int> virtual_to_real_;
  std::vector<std::vector<std::uint64_t>> counts_;
  DefinedStage stage_;
};

}  // namespace isohalo::test
