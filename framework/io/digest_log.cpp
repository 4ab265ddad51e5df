#include "framework/io/digest_log.hpp"

#include <fstream>
#include <sstream>

#include "datatypes/error.hpp"
#include "framework/io/digest.hpp"
#include "framework/io/readable.hpp"
#include "framework/mpi/whole_file.hpp"

namespace isohalo {

namespace {

constexpr std::streamsize kLongestLine = 1 << 20;

/// The step of a line without its end, and what it says of it.
std::pair<std::int64_t, std::map<std::string, std::string>> parse_line(const std::string& line) {
  std::istringstream in(line);
  std::int64_t step = -1;
  if (!(in >> step) || step < 0) throw UsageError("the line does not begin with a step");
  std::map<std::string, std::string> entries;
  for (std::string word; in >> word;) {
    const auto equals = word.find('=');
    if (equals == std::string::npos || equals == 0) throw UsageError("\"" + word + "\" is no NAME=DIGEST");
    const std::string name = word.substr(0, equals), value = word.substr(equals + 1);
    if (name != "residual") parse_digest(value);
    entries[name] = value;
  }
  if (entries.size() < 2 || !entries.contains("residual")) throw UsageError("a digest or the residual is missing");
  return {step, entries};
}

std::string not_a_line(const std::filesystem::path& file, std::int64_t number, const UsageError& reason) {
  const std::string why = reason.what();  // quotes a file that may be of any kind
  return file.string() + ":" + std::to_string(number) +
         ": no line of a digest log: " + (why.size() > 200 ? why.substr(0, 200) + ".." : why);
}

std::string joined(const std::map<std::int64_t, std::string>& lines) {
  std::string all;
  for (const auto& [step, line] : lines) all += line;
  return all;
}

}  // namespace

DigestLogWriter::DigestLogWriter(std::filesystem::path file, bool go_on) : file_(std::move(file)) {
  const std::string before = read_whole(file_);
  if (!go_on) {
    if (!before.empty()) std::filesystem::remove(file_);
    return;
  }
  read(before);
  if (joined(lines_) != before) write();
}

void DigestLogWriter::read(const std::string& text) {
  std::istringstream in(text);
  std::int64_t number = 0, damaged = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const bool whole = !in.eof();
    try {
      const std::int64_t step = parse_line(line).first;
      if (!whole) throw UsageError("it has no end");
      const auto [place, first] = lines_.try_emplace(step, line + "\n");
      if (!first) throw UsageError("step " + std::to_string(step) + " is there twice");
    } catch (const UsageError& e) {
      if (!whole && !lines_.empty()) break;
      if (damaged++ == 0) damage_ = not_a_line(file_, number, e);
    }
  }
  if (damaged > 1) damage_ += "; so are " + std::to_string(damaged - 1) + " more";
}

void DigestLogWriter::write() const {
  write_whole(file_, joined(lines_));
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
  std::vector<char> room(kLongestLine);  // a file of another kind may be one line of any length
  const auto next = [&] { return in.getline(room.data(), kLongestLine) || in.gcount() > 0; };
  for (std::int64_t number = 1; next(); ++number) {
    try {
      if (!in) throw UsageError("it is too long");
      const auto [step, entries] = parse_line(room.data());
      if (!log.empty() && step <= log.rbegin()->first) throw UsageError("the steps do not increase");
      log[step] = entries;
    } catch (const UsageError& e) {
      throw UsageError(not_a_line(file, number, e));
    }
  }
  if (in.bad()) throw UsageError(file.string() + " cannot be read to its end");
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
