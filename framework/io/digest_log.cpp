#include "framework/io/digest_log.hpp"

#include <fstream>
#include <sstream>

#include "datatypes/error.hpp"
#include "framework/io/digest.hpp"
#include "framework/io/readable.hpp"
#include "framework/mpi/whole_file.hpp"

namespace isohalo {

namespace {

constexpr std::size_t kLongestLine = 1 << 20;

void read_line(const std::string& line, DigestLog& log) {
  std::istringstream in(line);
  std::int64_t step = -1;
  if (!(in >> step) || step < 0) throw UsageError("the line does not begin with a step");
  if (!log.empty() && step <= log.rbegin()->first) throw UsageError("the steps do not increase");
  auto& entries = log[step];
  for (std::string word; in >> word;) {
    const auto equals = word.find('=');
    if (equals == std::string::npos || equals == 0) throw UsageError("\"" + word + "\" is no NAME=DIGEST");
    const std::string name = word.substr(0, equals), value = word.substr(equals + 1);
    if (name != "residual") parse_digest(value);
    entries[name] = value;
  }
  if (entries.size() < 2 || !entries.contains("residual")) throw UsageError("a digest or the residual is missing");
}

}  // namespace

namespace {

/// The step of a line without its end; nothing for any other text.
std::optional<std::int64_t> logged_step(const std::string& line) {
  try {
    DigestLog one;
    read_line(line, one);
    return one.begin()->first;
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

}  // namespace

DigestLogWriter::DigestLogWriter(std::filesystem::path file, bool go_on) : file_(std::move(file)) {
  const std::string before = read_whole(file_);
  if (!go_on) {
    if (!before.empty()) std::filesystem::remove(file_);
    return;
  }
  std::istringstream in(before);
  for (std::string line; std::getline(in, line) && !in.eof();)  // without an end of line it is not whole
    if (const auto step = logged_step(line)) lines_[*step] = line + "\n";
  std::string whole;
  for (const auto& [step, line] : lines_) whole += line;
  if (whole != before) write();
}

void DigestLogWriter::write() const {
  std::string whole;
  for (const auto& [step, line] : lines_) whole += line;
  write_whole(file_, whole);
}

std::optional<std::string> DigestLogWriter::add(std::int64_t step, const std::string& line) {
  if (lines_.empty() || lines_.rbegin()->first < step) {
    lines_.clear();  // only what comes later may be in the way
    append_whole(file_, line);
    return std::nullopt;
  }
  std::string& place = lines_[step];
  if (place == line) return std::nullopt;
  std::string former = line;
  former.swap(place);
  write();
  if (former.empty()) return std::nullopt;
  return former;
}

DigestLog read_digest_log(const std::filesystem::path& file) {
  refuse_unreadable(file);
  std::ifstream in(file);
  DigestLog log;
  std::int64_t number = 0;
  std::vector<char> room(kLongestLine);  // a file of another kind may be one line of any length
  for (;;) {
    in.getline(room.data(), static_cast<std::streamsize>(room.size()));
    if (in.eof() && in.gcount() == 0) break;
    ++number;
    if (in.fail() && !in.eof())
      throw UsageError(file.string() + ":" + std::to_string(number) + ": no line of a digest log: it is too long");
    const std::string line = room.data();
    try {
      read_line(line, log);
    } catch (const UsageError& e) {
      throw UsageError(file.string() + ":" + std::to_string(number) + ": no line of a digest log: " + e.what());
    }
  }
  if (log.empty()) throw UsageError(file.string() + ": the digest log is empty");
  return log;
}

DigestLogComparison compare_digest_logs(const DigestLog& a, const DigestLog& b) {
  DigestLogComparison c;
  for (const auto& [step, entries] : a) {
    const auto other = b.find(step);
    if (other == b.end()) {
      ++c.only_a;
      continue;
    }
    ++c.common;
    if (c.first) continue;
    if (entries == other->second) {
      c.last_equal = step;
      continue;
    }
    c.first = step;
    const auto text = [](const auto& list, const std::string& name) {
      const auto found = list.find(name);
      return found == list.end() ? std::string("(absent)") : found->second;
    };
    for (const auto* list : {&entries, &other->second})
      for (const auto& [name, value] : *list)
        if (text(entries, name) != text(other->second, name))
          c.different[name] = text(entries, name) + " against " + text(other->second, name);
  }
  c.only_b = static_cast<std::int64_t>(b.size()) - c.common;
  if (c.common == 0) throw UsageError("the two digest logs have no step in common");
  return c;
}

}  // namespace isohalo
