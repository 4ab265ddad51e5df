/// Channels in shared memory: order, late receivers, what is left behind, and nodes apart.

#include "framework/shm/channels.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "datatypes/error.hpp"
#include "framework/mpi/progress.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

std::byte pattern(int from, int to, std::int64_t message, std::int64_t at) {
  return static_cast<std::byte>(from * 31 + to * 17 + message * 7 + at * 3);
}

void fill(std::byte* slot, std::int64_t bytes, int from, int to, std::int64_t message) {
  for (std::int64_t k = 0; k < bytes; ++k) slot[k] = pattern(from, to, message, k);
}

bool holds(const std::byte* slot, std::int64_t bytes, int from, int to, std::int64_t message) {
  for (std::int64_t k = 0; k < bytes; ++k)
    if (slot[k] != pattern(from, to, message, k)) return false;
  return true;
}

std::int64_t length(int from, int to) {
  return 1 + 37 * from + 5 * to;
}

struct Opened {
  std::vector<int> peers;
  ChannelGroup channels;
};

/// Channels between all pairs of ranks of a node, a rank and itself included.
Opened open_all(const Node& node, std::int64_t scale = 1) {
  Opened o;
  std::vector<ChannelGroup::Outgoing> outgoing;
  for (int r = 0; r < test::ranks(); ++r)
    if (node.holds(r)) {
      o.peers.push_back(r);
      outgoing.push_back({r, scale * length(test::rank(), r)});
    }
  o.channels = ChannelGroup(node, outgoing, o.peers);
  return o;
}

/// `count` messages over every channel, by ranks that pause at random; the number that came wrong.
std::int64_t send_all(Opened& o, int count, std::int64_t scale, test::Random& random) {
  std::vector<int> sent(o.peers.size()), taken(o.peers.size());
  std::int64_t wrong = 0;
  const auto step = [&] {
    bool done = true;
    for (std::size_t k = 0; k < o.peers.size(); ++k) {
      const int peer = o.peers[k], me = test::rank();
      if (sent[k] < count)
        if (std::byte* slot = o.channels.outgoing[k].free_slot()) {
          fill(slot, scale * length(me, peer), me, peer, sent[k]++);
          o.channels.outgoing[k].publish();
        }
      if (taken[k] < count)
        if (const std::byte* slot = o.channels.incoming[k].next_message()) {
          wrong += !holds(slot, scale * length(peer, me), peer, me, taken[k]++);
          o.channels.incoming[k].release();
        }
      done = done && sent[k] == count && taken[k] == count;
    }
    if (random.in(0, 50) == 0) usleep(static_cast<useconds_t>(random.in(0, 100)));
    return done;
  };
  wait_until(step, Communicator::of(MPI_COMM_WORLD).spins());
  return wrong;
}

void send_all_once(const Node& node, test::Random& random) {
  auto o = open_all(node);
  EXPECT_EQ(send_all(o, 2, 1, random), 0);
}

TEST(Channels, KeepOrderAndContents) {
  const auto node = Node::of(Communicator::of(MPI_COMM_WORLD));
  test::Random random(static_cast<std::uint64_t>(test::rank()));
  auto o = open_all(*node);
  EXPECT_EQ(static_cast<int>(o.peers.size()), node->ranks());
  EXPECT_EQ(send_all(o, 500, 1, random), 0);
}

TEST(Channels, KnowsTheNodes) {
  const char* expected = std::getenv("ISOHALO_TEST_RANKS_PER_NODE");
  if (!expected) GTEST_SKIP() << "not told how many ranks a node has";
  EXPECT_EQ(Node::of(Communicator::of(MPI_COMM_WORLD))->ranks(), std::atoi(expected));
}

TEST(Channels, ASenderWaitsForTheMessageBeforeTheLast) {
  const auto node = Node::of(Communicator::of(MPI_COMM_WORLD));
  ChannelGroup self(*node, {{test::rank(), 8}}, {test::rank()});
  ChannelEnd &out = self.outgoing[0], &in = self.incoming[0];
  EXPECT_EQ(in.next_message(), nullptr);
  std::byte* const first = out.free_slot();
  out.publish();
  std::byte* const second = out.free_slot();
  EXPECT_NE(first, second);
  out.publish();
  EXPECT_EQ(out.free_slot(), nullptr);
  EXPECT_EQ(in.next_message(), first);
  in.release();
  EXPECT_EQ(out.free_slot(), first);
  EXPECT_EQ(in.next_message(), second);
}

TEST(Channels, AReceiverOpensItsNextMessageWithANote) {
  const auto node = Node::of(Communicator::of(MPI_COMM_WORLD));
  constexpr std::int64_t bytes = 300;
  ChannelGroup self(*node, {{test::rank(), 8, bytes}}, {test::rank()});
  ChannelEnd &out = self.outgoing[0], &in = self.incoming[0];
  for (int message = 0; message < 6; ++message) {
    EXPECT_FALSE(out.opened());
    fill(in.note(), bytes, 1, 2, message);
    in.open();
    EXPECT_TRUE(out.opened());
    EXPECT_TRUE(holds(out.note(), bytes, 1, 2, message));
    fill(out.free_slot(), 8, 3, 4, message);
    out.publish();
    EXPECT_FALSE(out.opened());  // what is open is the message that has been sent
    EXPECT_TRUE(holds(in.next_message(), 8, 3, 4, message));
    EXPECT_TRUE(holds(in.note(), bytes, 1, 2, message));
    in.release();
  }
}

/// To the next member of the node, whose channels are still read when the sender's are gone.
TEST(Channels, AMessageOutlivesItsSendersChannels) {
  const auto node = Node::of(Communicator::of(MPI_COMM_WORLD));
  const auto& members = node->layout().members;
  const int n = node->ranks(), me = node->layout().me;
  const int next = members[static_cast<std::size_t>((me + 1) % n)],
            last = members[static_cast<std::size_t>((me + n - 1) % n)];
  if (n == 1) GTEST_SKIP() << "one rank: both ends are one group";
  ChannelGroup both(*node, {{next, 100}}, {last});
  fill(both.outgoing[0].free_slot(), 100, me, next, 3);
  both.outgoing[0].publish();
  const ChannelEnd receiver = both.incoming[0];
  wait_until([&] { return receiver.next_message() != nullptr; }, Communicator::of(MPI_COMM_WORLD).spins());
  node->max(0);
  if (me % 2 == 0) both = ChannelGroup();
  node->max(0);
  if (me % 2 == 1) {
    EXPECT_TRUE(holds(receiver.next_message(), 100, (me + n - 1) % n, test::rank(), 3));
  }
}

TEST(Channels, LeaveNothingBehind) {
  const auto node = Node::of(Communicator::of(MPI_COMM_WORLD));
  test::Random random(1);
  send_all_once(*node, random);
  const auto before = test::open_files();
  for (int round = 0; round < 50; ++round) send_all_once(*node, random);
  EXPECT_EQ(test::open_files(), before);
  std::vector<Opened> kept;
  for (int k = 0; k < 20; ++k) kept.push_back(open_all(*node));
  EXPECT_EQ(test::open_files(), before);  // nor while they live
}

TEST(Channels, SeveralGroupsSideBySide) {
  const auto node = Node::of(Communicator::of(MPI_COMM_WORLD));
  test::Random random(static_cast<std::uint64_t>(test::rank()));
  auto small = open_all(*node);
  EXPECT_EQ(send_all(small, 3, 1, random), 0);
  auto large = open_all(*node, 20000);
  EXPECT_EQ(send_all(large, 3, 20000, random), 0);
  EXPECT_EQ(send_all(small, 3, 1, random), 0);
}

TEST(Channels, RefusesWhatTheNodeDoesNotHave) {
  const auto node = Node::of(Communicator::of(MPI_COMM_WORLD));
  // One rank wants it, all hear of it.
  const std::int64_t bytes = test::rank() == test::ranks() - 1 ? std::int64_t{1} << 45 : 64;
  bool refused = false;
  try {
    const ChannelGroup group(*node, {{test::rank(), bytes}}, {test::rank()});
  } catch (const RunError& e) {
    refused = std::string(e.what()).find("cannot be had") != std::string::npos;
  }
  EXPECT_EQ(refused, node->holds(test::ranks() - 1));
  test::Random random(1);
  auto o = open_all(*node);
  EXPECT_EQ(send_all(o, 3, 1, random), 0);  // usable afterwards
}

}  // namespace
}  // namespace isohalo
