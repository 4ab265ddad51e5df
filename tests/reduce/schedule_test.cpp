/// Schedules: the encoded form, what is refused, and what every rank does, against the definition.

#include "framework/schedule/schedule.hpp"

#include <gtest/gtest.h>

#include <map>

#include "datatypes/error.hpp"
#include "datatypes/mix.hpp"
#include "framework/schedule/rank_set.hpp"
#include "framework/schedule/schedule_check.hpp"
#include "framework/schedule/schedule_run.hpp"
#include "tests/mpi_main.hpp"
#include "tests/reduce/schedule_by_definition.hpp"

namespace isohalo {
namespace {

std::string refusal(const std::string& text, int ranks) {
  try {
    Schedule::parse(text, ranks);
  } catch (const UsageError& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
    return e.what();
  }
  return "";
}

void expect_refused(const std::string& text, int ranks, const std::vector<std::string>& said) {
  const std::string what = refusal(text, ranks);
  for (const auto& part : said)
    EXPECT_NE(what.find(part), std::string::npos)
        << text << " for " << ranks << ": no \"" << part << "\" in: " << what;
}

TEST(Schedule, RefusalsNameStageValueLimitAndWayOut) {
  expect_refused("a1", 1, {"stage 1 (a1) has base 1; the least is 2"});
  expect_refused("c6m1,a7,e6m1", 7, {"stage 1 (c6m1) has base 1; the least is 2"});
  expect_refused("d0", 4, {"stage 1 (d0) has base 0; the least is 2"});
  expect_refused("c8m2,a2,a2,e8m2", 7, {"threshold 8; the most is the number of ranks, 7"});
  expect_refused("c5m2,a2,a2,e5m2", 7, {"threshold 5, no multiple of its base 2: take 4"});
  expect_refused("m1g0a3,n1g3a2", 7, {"stage 1 (m1g0a3) has 0 groups; the least is 1"});
  expect_refused("m7g1a3,n7g3a2", 7, {"has 7 remainder ranks; the most is 6"});
  expect_refused("a2,a2,e4m2", 4, {"stage 3 (e4m2) has no c4m2 of its own before it: put it there"});
  expect_refused("a2,n1g2a2", 5, {"stage 1 (a2) joins groups of 2 of 5 ranks"});
  expect_refused("n1g2a2", 5, {"stage 1 (n1g2a2) has no m1gGaB of its own before it: put it there"});
  expect_refused("c6m2,a2,a2,e4m2", 7, {"stage 4 (e4m2) does not fit c6m2: that must be c4m2"});
  expect_refused("m1g2a3,n2g3a2", 7, {"stage 2 (n2g3a2) does not fit m1g2a3: that must be m2gGaB"});
  expect_refused("c2m2,c2m2,a3", 4, {"stage 2 (c2m2) is a second collapse, merge or elimination"});
  expect_refused("c2m2,m1g1a2", 4, {"stage 2 (m1g1a2) is a second collapse, merge or elimination"});
  expect_refused("c4m2,a2,e4m2,e4m2", 4, {"stage 4 (e4m2) has no c4m2 of its own before it"});
  expect_refused("a4", 6, {"stage 1 (a4) joins groups of 4 of 6 ranks", "choose bases whose product"});
  expect_refused("a2", 6, {"rank 0 lacks the contribution of rank 2 (it has 2 of 6)", "--ranks 6 --best"});
  expect_refused("", 2, {"rank 0 lacks the contribution of rank 1 (it has 1 of 2)"});
  expect_refused("c6m2,a2,a2", 7, {"rank 0 lacks the contribution of rank 1 (it has 1 of 7)"});
  expect_refused("m1g2a3,a2", 7, {"rank 0 lacks"});
  expect_refused("a3,a2,c2m2,e2m2", 6, {"rank 0 holds a contribution more than once", "--ranks 6 --best"});
  expect_refused("m3g3a3,n3g3a2", 9, {"gives its remainder ranks to 3 groups; there are 2"});
  expect_refused("m1g2a3,n1g2a2", 7, {"rank 0 holds a contribution more than once"});
  expect_refused("d2", 5, {"lacks the contribution"});
  expect_refused("d2147483647,d2147483647,d2147483647", 2, {"pass 2^62"});
  expect_refused("a2147483648", 2, {"has a number beyond 2147483647"});
  expect_refused("a2,,a2", 4, {"stage 2 (\"\") is no stage: a stage is aB, cTmB"});
  expect_refused("a2,a2,", 4, {"stage 3 (\"\") is no stage"});
  expect_refused("x\n\t2", 4, {"stage 1 (\"x??2\") is no stage"});
  expect_refused(std::string(100, 'z'), 4, {"zzz..\") is no stage"});
  for (const char* text :
       {"a", "a2x", "a-2", "a+2", "a 2", "A2", "c6", "c6a2", "m1g2", "m1g2m3", "n1a2", "2", ",", "d2.0"})
    expect_refused(text, 4, {"is no stage"});
  EXPECT_NE(refusal("a2", 0), "");
  expect_refused("a2", 1 << 25, {"must be 1 to 16777216"});
  expect_refused("a8388607", 8388607, {"messages, more than the limit of 4000000000: take smaller bases"});
}

TEST(Schedule, PrintsWhatItReads) {
  const std::pair<const char*, int> good[] = {{"", 1},
                                              {"a7", 7},
                                              {"a2,a3", 6},
                                              {"c6m2,a2,a2,e6m2", 7},
                                              {"c4m4,e4m4", 4},
                                              {"m1g2a3,n1g3a2", 7},
                                              {"m3g2a2,n3g2a2", 7},
                                              {"d2,d2,d2", 5},
                                              {"d3,d3", 9},
                                              {"a2,d2,d2", 8},
                                              {"d100", 7},
                                              {"c0m2,a4", 4},
                                              {"c6m3,d3,e6m3", 7},
                                              {"m2g1a2,a2,n2g4a3", 14}};
  for (const auto& [text, ranks] : good) EXPECT_EQ(Schedule::parse(text, ranks).text(), text);
  EXPECT_EQ(Schedule::parse("a02,a003", 6).text(), "a2,a3");
}

/// Every rank's actions are the messages of the definition; the counts of contributions are its counts.
void expect_as_defined(const std::string& text, int p) {
  SCOPED_TRACE(text + " for " + std::to_string(p));
  const test::DefinedSchedule defined(text, p);
  const Schedule schedule = Schedule::parse(text, p);
  ASSERT_TRUE(defined.valid);
  ASSERT_EQ(defined.stages.size(), static_cast<std::size_t>(schedule.size()));
  for (int s = 0; s < schedule.size(); ++s) {
    const auto& stage = defined.stages[static_cast<std::size_t>(s)];
    std::int64_t messages = 0, most = 0;
    std::vector<std::vector<int>> arrivals(static_cast<std::size_t>(p));
    for (int r = 0; r < p; ++r) {
      const auto& sends = stage.sends[static_cast<std::size_t>(r)];
      for (int to : sends) arrivals[static_cast<std::size_t>(to)].push_back(r);
      messages += static_cast<std::int64_t>(sends.size());
      most = std::max(most, static_cast<std::int64_t>(sends.size()));
    }
    EXPECT_EQ(schedule.messages(s), messages);
    EXPECT_EQ(schedule.most_sends(s), most);
    for (int r = 0; r < p; ++r) {
      StageActions a = schedule.actions(s, r);
      EXPECT_EQ(a.send, stage.sends[static_cast<std::size_t>(r)]);
      EXPECT_LE(a.own, a.receive.size());
      EXPECT_EQ(a.replace, bool{stage.replaces[static_cast<std::size_t>(r)]});
      std::sort(a.receive.begin(), a.receive.end());
      EXPECT_EQ(a.receive, arrivals[static_cast<std::size_t>(r)]);
    }
  }
}

TEST(Schedule, ActionsAreThoseOfTheDefinition) {
  const std::pair<const char*, int> cases[] = {{"a8", 8},
                                               {"a2,a4", 8},
                                               {"a2,a2,a2", 8},
                                               {"a3,a2,a5", 30},
                                               {"c6m2,a2,a2,e6m2", 7},
                                               {"c4m4,e4m4", 4},
                                               {"c9m3,a5,e9m3", 11},
                                               {"m1g2a3,n1g3a2", 7},
                                               {"m3g2a2,n3g2a2", 7},
                                               {"m5g2a3,a2,n5g6a2", 17},
                                               {"d2,d2,d2", 7},
                                               {"d3,d3", 8},
                                               {"d5,d5", 7},
                                               {"a2,d3", 6},
                                               {"c6m3,d3,e6m3", 7},
                                               {"c0m5,a4,e0m5", 4}};
  for (const auto& [text, ranks] : cases) expect_as_defined(text, ranks);
}

/// A random text: mostly well-formed stages that often fit, sometimes with a character changed.
std::string random_text(test::Random& random, int p) {
  std::vector<std::string> stages;
  std::int64_t left = p;
  const auto number = [](std::int64_t n) { return std::to_string(n); };
  const std::int64_t frame = random.in(0, 3), b = random.in(1, 4);
  std::string last;
  if (frame == 1) {
    const std::int64_t t = random.in(0, p / std::max<std::int64_t>(b, 1)) * b;
    stages.push_back("c" + number(t) + "m" + number(b));
    last = "e" + number(t) + "m" + number(b);
    left = p - t / b * (b - 1);
  }
  const std::int64_t r = frame == 2 ? random.in(0, p - 1) : 0;
  left -= r;
  for (int k = 0; k < 5 && left > 1; ++k) {
    std::int64_t base = random.in(2, 5);
    for (int tries = 0; tries < 6 && left % base; ++tries) base = random.in(2, std::max<std::int64_t>(2, left));
    stages.push_back((frame == 3 ? "d" : "a") + number(base));
    left = frame == 3 ? (left + base - 1) / base : left / base;
  }
  if (frame == 2 && stages.size() >= 2) {
    const std::int64_t before = (p - r) / std::max<std::int64_t>(1, std::stoll(stages.back().substr(1)));
    stages.front() = "m" + number(r) + "g" + number(random.in(1, 3)) + stages.front();
    stages.back() = "n" + number(r) + "g" + number(random.in(0, 4) ? before : random.in(0, 4)) + stages.back();
  }
  if (!last.empty()) stages.push_back(last);
  std::string text;
  for (const auto& s : stages) text += (text.empty() ? "" : ",") + s;
  if (!text.empty() && random.in(0, 9) == 0) {
    const auto at = static_cast<std::size_t>(random.in(0, static_cast<std::int64_t>(text.size()) - 1));
    const std::string letters = "acdegmn,0123456789 -";
    text[at] = letters[static_cast<std::size_t>(random.in(0, static_cast<std::int64_t>(letters.size()) - 1))];
  }
  return text;
}

TEST(Schedule, FuzzedTextsAreAcceptedExactlyWhenTheDefinitionHolds) {
  test::Random random(20170817);
  std::map<bool, int> seen;
  for (int k = 0; k < 40000; ++k) {
    const int p = static_cast<int>(random.in(1, 24));
    const std::string text = random_text(random, p);
    const bool valid = test::DefinedSchedule(text, p).valid;
    ++seen[valid];
    ASSERT_EQ(refusal(text, p).empty(), valid) << text << " for " << p << ": " << refusal(text, p);
    if (valid && k % 8 == 0) expect_as_defined(text, p);
  }
  EXPECT_GT(seen[true], 5000);
  EXPECT_GT(seen[false], 5000);
}

/// Neither associative nor commutative.
std::uint64_t hash(std::uint64_t a, std::uint64_t b) {
  return mix64(a * 3 + mix64(b + 17));
}

TEST(Schedule, StagesMadeByHandAreCheckedToo) {
  const auto make = [](const Stage& stage, int ranks) { return Schedule({stage}, ranks); };
  EXPECT_THROW(make({.kind = StageKind::factor, .base = -2}, 4), UsageError);
  EXPECT_THROW(make({.kind = StageKind::collapse, .base = 2, .threshold = -2}, 4), UsageError);
  EXPECT_THROW(make({.kind = StageKind::merge, .base = 2, .remainder = -1}, 4), UsageError);
  EXPECT_THROW(make({.kind = StageKind::merge, .base = 2, .remainder = 1, .groups = -1}, 5), UsageError);
  EXPECT_THROW(make({.kind = StageKind::eliminate, .threshold = -1}, 4), UsageError);
  EXPECT_THROW(make({.kind = StageKind::eliminate, .remainder = -2}, 4), UsageError);
  EXPECT_EQ(make({.kind = StageKind::factor, .base = 4}, 4).text(), "a4");
}

TEST(Schedule, AllRanksGetTheSameBitsWhateverTheOperation) {
  for (const auto& [text, p] : {std::pair{"a2,a3,a4", 24}, {"c20m4,a3,a3,e20m4", 24}, {"m3g2a3,a2,n3g6a3", 21}}) {
    std::vector<std::uint64_t> values;
    for (int r = 0; r < p; ++r) values.push_back(mix64(static_cast<std::uint64_t>(r)));
    run_in_process(Schedule::parse(text, p), values, hash);
    for (auto v : values) EXPECT_EQ(v, values[0]) << text;
  }
}

TEST(Schedule, RankOrderIsKeptWhereItIsSaidToBe) {
  const std::tuple<const char*, int, bool> cases[] = {{"a2,a3,a2", 12, true},
                                                      {"c6m3,a5,e6m3", 9, true},
                                                      {"m3g1a2,a2,n3g4a2", 11, true},
                                                      {"m3g2a2,n3g2a2", 7, false},
                                                      {"m1g2a3,n1g3a2", 7, true},
                                                      {"d2,d2", 4, false},
                                                      {"", 1, true}};
  for (const auto& [text, p, kept] : cases) {
    const Schedule schedule = Schedule::parse(text, p);
    EXPECT_EQ(keeps_rank_order(schedule), kept) << text;
    if (schedule.for_sets_only()) continue;
    std::vector<std::string> words;
    std::string in_order;
    for (int r = 0; r < p; ++r)
      words.push_back(std::string(1, static_cast<char>('a' + r))), in_order += words.back();
    run_in_process(schedule, words, std::plus<>());
    for (const auto& w : words) EXPECT_EQ(w == in_order, kept) << text << ": " << w;
  }
}

TEST(Schedule, ContributionsAreTheCountsOfTheDefinition) {
  for (const auto& [text, p] :
       {std::pair{"a2,a3,a4", 24}, {"c9m3,a2,a4,e9m3", 14}, {"m3g2a3,a2,n3g6a3", 21}, {"d3,d3,d3", 26}}) {
    const Schedule schedule = Schedule::parse(text, p);
    for (int r = 0; r < p; ++r) {
      EXPECT_EQ(contributions(schedule, 0, r), RankSet(r, r + 1));
      EXPECT_EQ(contributions(schedule, schedule.size(), r), RankSet(0, p)) << text;
    }
    if (schedule.for_sets_only()) continue;
    const auto n = static_cast<std::size_t>(p);
    std::vector<std::vector<int>> counts(n, std::vector<int>(n));
    for (std::size_t r = 0; r < n; ++r) counts[r][r] = 1;
    run_in_process(schedule, counts, [](std::vector<int> a, const std::vector<int>& b) {
      std::transform(a.begin(), a.end(), b.begin(), a.begin(), std::plus<>());
      return a;
    });
    for (const auto& held : counts) EXPECT_EQ(held, std::vector<int>(n, 1)) << text;
  }
  EXPECT_EQ(contributions(Schedule::parse("m1g2a3,n1g3a2", 7), 1, 1).intervals(),
            (std::vector<std::pair<int, int>>{{0, 4}}));
  EXPECT_EQ(contributions(Schedule::parse("m1g2a3,n1g3a2", 7), 1, 4).intervals(),
            (std::vector<std::pair<int, int>>{{4, 7}}));
  EXPECT_EQ(contributions(Schedule::parse("d2,d2,d2", 7), 2, 1).intervals(),
            (std::vector<std::pair<int, int>>{{0, 2}, {5, 7}}));
}

TEST(RankSet, UnionAndMembership) {
  test::Random random(3);
  for (int k = 0; k < 2000; ++k) {
    RankSet set;
    std::vector<bool> in(20);
    for (int i = 0; i < 4; ++i) {
      const int first = static_cast<int>(random.in(0, 19)), last = static_cast<int>(random.in(0, 20));
      set.insert(RankSet(first, last));
      for (int r = first; r < last; ++r) in[static_cast<std::size_t>(r)] = true;
    }
    for (int r = 0; r < 20; ++r) ASSERT_EQ(set.contains(r), bool{in[static_cast<std::size_t>(r)]});
    std::int64_t size = 0;
    for (const auto& [first, last] : set.intervals()) size += last - first;
    ASSERT_EQ(size, std::count(in.begin(), in.end(), true));
  }
}

TEST(Schedule, AMillionRanksAreChecked) {
  EXPECT_EQ(Schedule::parse("a10,a10,a10,a10,a10,a10", 1000000).messages(), 54000000);
  EXPECT_EQ(Schedule::parse("c6m2,a10,a10,a10,a10,a10,a10,e6m2", 1000003).messages(), 54000006);
  EXPECT_EQ(Schedule::parse("m3g3a10,a10,a10,a10,a10,n3g100000a10", 1000003).messages(), 54000060);
  expect_refused("m3g3a10,a10,a10,a10,a10,n3g50000a10", 1000003, {"rank 0 holds a contribution more than once"});
}

}  // namespace
}  // namespace isohalo
