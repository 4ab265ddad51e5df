/// The encoded form of schedules: parser and printer.

#include <charconv>

#include "datatypes/error.hpp"
#include "framework/schedule/schedule.hpp"

namespace isohalo {

namespace {

const char* const kForms = "a stage is aB, cTmB, eTmB, mRgGaB, nRgGaB, dK, xQtT, yQtT or zQtT with decimal numbers";

/// Reads one stage from its text.
class StageReader {
 public:
  StageReader(std::string_view text, std::size_t number) : text_(text), rest_(text), number_(number) {}

  Stage read() {
    Stage stage;
    const char letter = rest_.empty() ? '\0' : rest_[0];
    rest_.remove_prefix(rest_.empty() ? 0 : 1);
    switch (letter) {
      case 'a':
      case 'd':
        stage.kind = letter == 'a' ? StageKind::factor : StageKind::dissemination;
        stage.base = number("");
        break;
      case 'c':
      case 'e':
        stage.kind = letter == 'c' ? StageKind::collapse : StageKind::expand;
        stage.threshold = number("m");
        stage.base = number("");
        break;
      case 'm':
      case 'n':
        stage.kind = letter == 'm' ? StageKind::merge : StageKind::inverse_merge;
        stage.remainder = number("g");
        stage.groups = number("a");
        stage.base = number("");
        break;
      case 'x':
      case 'y':
      case 'z':
        stage.kind = letter == 'x' ? StageKind::eliminate : letter == 'y' ? StageKind::settle : StageKind::resolve;
        stage.threshold = number("t");
        stage.remainder = number("");
        break;
      default:
        refuse("is no stage");
    }
    return stage;
  }

 private:
  /// A number and the letter after it, or the end of the stage.
  int number(std::string_view next) {
    if (rest_.empty() || rest_[0] < '0' || rest_[0] > '9') refuse("is no stage");
    int value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error == std::errc::result_out_of_range) refuse("has a number beyond 2147483647");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    if (next.empty() ? !rest_.empty() : !rest_.starts_with(next)) refuse("is no stage");
    rest_.remove_prefix(next.size());
    return value;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    std::string shown(text_.substr(0, 40));
    for (char& c : shown)
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
    throw UsageError("schedule: stage " + std::to_string(number_) + " (\"" + shown +
                     (text_.size() > 40 ? "..\") " : "\") ") + what + ": " + kForms);
  }

  std::string_view text_, rest_;
  std::size_t number_;
};

}  // namespace

std::vector<Stage> parse_stages(std::string_view text) {
  std::vector<Stage> stages;
  if (text.empty()) return stages;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    stages.push_back(StageReader(text.substr(start, end - start), stages.size() + 1).read());
    start = end + 1;
  }
  return stages;
}

std::string to_text(const Stage& stage) {
  const std::string base = std::to_string(stage.base);
  const std::string threshold = std::to_string(stage.threshold);
  const std::string merged = std::to_string(stage.remainder) + "g" + std::to_string(stage.groups);
  const std::string eliminated = threshold + "t" + std::to_string(stage.remainder);
  switch (stage.kind) {
    case StageKind::factor:
      return "a" + base;
    case StageKind::collapse:
      return "c" + threshold + "m" + base;
    case StageKind::expand:
      return "e" + threshold + "m" + base;
    case StageKind::merge:
      return "m" + merged + "a" + base;
    case StageKind::inverse_merge:
      return "n" + merged + "a" + base;
    case StageKind::dissemination:
      return "d" + base;
    case StageKind::eliminate:
      return "x" + eliminated;
    case StageKind::settle:
      return "y" + eliminated;
    case StageKind::resolve:
      return "z" + eliminated;
  }
  return {};
}

std::string to_text(std::span<const Stage> stages) {
  std::string text;
  for (const Stage& stage : stages) text += (text.empty() ? "" : ",") + to_text(stage);
  return text;
}

}  // namespace isohalo
