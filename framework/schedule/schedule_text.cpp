/// The encoded form of schedules: parser and printer.

#include <algorithm>
#include <charconv>
#include <iterator>

#include "datatypes/error.hpp"
#include "framework/schedule/schedule.hpp"

namespace isohalo {

namespace {

/// How a stage of each StageKind is written: a letter, and numbers, of which these are the names: B base, T
/// threshold, R remainder, G groups. (Documents write K for the base of d, and xQtT for xTtR.)
constexpr std::string_view kForms[] = {"aB", "cTmB", "eTmB", "mRgGaB", "nRgGaB", "dB", "xTtR", "yTtR", "zTtR"};

bool is_number(char c) {
  return c >= 'A' && c <= 'Z';
}

/// The number of that name; of a Stage that may be const.
template <class S>
auto& number_of(S& stage, char name) {
  return name == 'B' ? stage.base : name == 'T' ? stage.threshold : name == 'R' ? stage.remainder : stage.groups;
}

Stage parse_stage(std::string_view text, std::size_t number) {
  const auto refuse = [&](const char* what) {
    std::string shown(text.substr(0, 40));
    for (char& c : shown)
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
    throw UsageError("schedule: stage " + std::to_string(number) + " (\"" + shown +
                     (text.size() > 40 ? "..\") " : "\") ") + what +
                     ": a stage is aB, cTmB, eTmB, mRgGaB, nRgGaB, dK, xQtT, yQtT or zQtT with decimal numbers");
  };
  const auto form = std::find_if(std::begin(kForms), std::end(kForms),
                                 [&](std::string_view f) { return text.starts_with(f.substr(0, 1)); });
  if (form == std::end(kForms)) refuse("is no stage");
  Stage stage{.kind = static_cast<StageKind>(form - std::begin(kForms))};
  const char *at = text.data(), *const end = at + text.size();
  for (const char c : *form) {
    if (at == end || (is_number(c) ? *at < '0' || *at > '9' : *at != c)) refuse("is no stage");
    if (!is_number(c)) {
      ++at;
      continue;
    }
    const auto [after, error] = std::from_chars(at, end, number_of(stage, c));
    if (error == std::errc::result_out_of_range) refuse("has a number beyond 2147483647");
    at = after;
  }
  if (at != end) refuse("is no stage");
  return stage;
}

}  // namespace

std::vector<Stage> parse_stages(std::string_view text) {
  std::vector<Stage> stages;
  if (text.empty()) return stages;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    stages.push_back(parse_stage(text.substr(start, end - start), stages.size() + 1));
    start = end + 1;
  }
  return stages;
}

std::string to_text(const Stage& stage) {
  std::string text;
  for (const char c : kForms[static_cast<std::size_t>(stage.kind)])
    text += is_number(c) ? std::to_string(number_of(stage, c)) : std::string(1, c);
  return text;
}

std::string to_text(std::span<const Stage> stages) {
  std::string text;
  for (const Stage& stage : stages) text += (text.empty() ? "" : ",") + to_text(stage);
  return text;
}

}  // namespace isohalo
