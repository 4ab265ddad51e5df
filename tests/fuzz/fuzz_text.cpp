/// The other texts that users and files bring. The first byte of an input chooses the parser.

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include "apps/common/option_text.hpp"
#include "apps/isohalo/compare_options.hpp"
#include "apps/isohalo/schedule_table.hpp"
#include "datatypes/printable.hpp"
#include "framework/halo/exchange.hpp"
#include "framework/io/compare.hpp"
#include "framework/io/digest.hpp"
#include "framework/io/digest_log.hpp"
#include "framework/io/run_record.hpp"
#include "framework/reduce/reduction_options.hpp"
#include "framework/schedule/schedule.hpp"
#include "tests/fuzz/harness.hpp"

namespace isohalo::fuzz {

namespace {

/// Two texts in one input.
std::pair<std::string_view, std::string_view> halves(std::string_view input) {
  const auto at = input.find('\f');
  return {input.substr(0, at), at == std::string_view::npos ? std::string_view{} : input.substr(at + 1)};
}

void schedule(std::string_view input) {
  if (input.empty()) return;
  const int ranks = 1 + static_cast<unsigned char>(input[0]) % 40;
  accepted([&] {
    const Schedule s = Schedule::parse(input.substr(1), ranks);
    require(Schedule::parse(s.text(), ranks) == s, "a schedule's text means another schedule");
    StageActions actions;
    for (int stage = 0; stage < s.size(); ++stage)
      for (int r = 0; r < ranks; ++r) {
        s.actions(stage, r, actions);
        for (const int peer : actions.send) require(peer >= 0 && peer < ranks, "a message to a rank that is none");
      }
  });
}

void words(std::string_view input) {
  const std::string word(input), shown = printable(word);
  require(printable(shown) == shown, "a printable text is not printable");
  require(std::none_of(shown.begin(), shown.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }),
          "a printable text acts on a terminal");
  accepted([&] { require(exchange_name(exchange_of_name(word)) == word, "an exchange has another name"); });
  accepted([&] { require(to_text(reduction_method(word)) == word, "a method has another name"); });
  accepted([&] {
    const std::uint64_t digest = parse_digest(word);
    require(parse_digest(hex_digest(digest)) == digest, "a digest's text means another digest");
  });
}

void tolerances(std::string_view input) {
  CompareRequest request;
  std::istringstream lines{std::string(input)};
  std::vector<std::string>* const lists[] = {&request.abs, &request.rel, &request.ulp};
  std::size_t k = 0;
  for (std::string line; std::getline(lines, line); ++k) lists[k % 3]->push_back(line);
  accepted([&] {
    const CompareOptions options = compare_options(request);
    const auto sane = [](const Tolerance& t) {
      return (!t.abs || (std::isfinite(*t.abs) && *t.abs >= 0)) &&
             (!t.rel || (std::isfinite(*t.rel) && *t.rel >= 0));
    };
    require(sane(options.tolerance), "a tolerance that is no number >= 0");
    for (const auto& [name, t] : options.fields) require(sane(t), "a field's tolerance that is no number >= 0");
  });
}

void times(std::string_view input) {
  accepted([&] {
    const EmulatedLatency e = parse_latency(std::string(input));
    require(e.latency_s >= 0 && e.latency_s <= 10 && e.pipeline_s >= 0 && e.pipeline_s <= 10,
            "a time out of range");
  });
  accepted([&] {
    SimulationOptions options;
    read_topology(std::string(input), options);
    require(options.ranks_per_node >= 0 && std::isfinite(options.on_node.latency_ns) &&
                options.on_node.latency_ns >= 0 && std::isfinite(options.on_node.pipeline_ns) &&
                options.on_node.pipeline_ns >= 0 && std::isfinite(options.on_node.per_byte_ns) &&
                options.on_node.per_byte_ns >= 0,
            "a topology whose costs are no times");
  });
}

void digest_logs(std::string_view input) {
  const auto both = halves(input);
  accepted([&] {
    const DigestLog first = read_digest_log(scratch_file("a.txt", both.first));
    const DigestLogComparison with_itself = compare_digest_logs(first, first);
    require(with_itself.same(), "a digest log differs from itself");
    compare_digest_logs(first, read_digest_log(scratch_file("b.txt", both.second)));
  });
}

/// The JSON beside a checkpoint must never be an error.
void run_metadata(std::string_view input) {
  const auto checkpoint = scratch_file("step.h5", "");
  scratch_file("step.json", input);
  if (const auto record = read_run_record(checkpoint)) {
    beside_cuts(*record, {0, 5, -1, std::int64_t{1} << 53});
    beside_cuts(*record, {});
  }
}

void table(std::string_view input) {
  accepted([&] {
    const ScheduleTable t = ScheduleTable::read(scratch_file("table.json", input).string());
    for (const auto& e : t.entries())
      require(t.find(e.machine, e.ranks, e.bytes).has_value(), "an entry is not found again");
  });
}

void config_text(std::string_view input) {
  config_lines(std::string(input));
}

constexpr void (*kParsers[])(std::string_view) = {schedule,    words,        tolerances, times,
                                                  digest_logs, run_metadata, table,      config_text};

}  // namespace

void fuzz_one(std::string_view input) {
  if (input.empty()) return;
  // Letters choose, so that seeds can be written by hand: 'a' the first parser.
  kParsers[(static_cast<unsigned char>(input[0]) + 256 - 'a') % std::size(kParsers)](input.substr(1));
}

}  // namespace isohalo::fuzz
