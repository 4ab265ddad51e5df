#include "framework/io/file_structure.hpp"

#include <algorithm>
#include <bit>

#include "framework/io/hdf5_messages.hpp"
#include "framework/io/readable.hpp"

namespace isohalo {

namespace detail {

std::uint32_t metadata_checksum(std::span<const std::uint8_t> bytes) {
  std::uint32_t a = 0xdeadbeef + static_cast<std::uint32_t>(bytes.size()), b = a, c = a;
  const auto word = [&](std::size_t at) {  // bytes beyond the end count as zeros
    std::uint32_t w = 0;
    for (std::size_t k = std::min<std::size_t>(4, bytes.size() - std::min(bytes.size(), at)); k-- > 0;)
      w = w << 8 | bytes[at + k];
    return w;
  };
  if (bytes.empty()) return c;
  const auto fold = [](std::uint32_t& x, std::uint32_t& y, std::uint32_t z, int r) {
    x = (x - z) ^ std::rotl(z, r);
    z += y;
    return z;
  };
  std::size_t at = 0;
  for (; bytes.size() - at > 12; at += 12) {
    a += word(at), b += word(at + 4), c += word(at + 8);
    c = fold(a, b, c, 4), a = fold(b, c, a, 6), b = fold(c, a, b, 8);
    c = fold(a, b, c, 16), a = fold(b, c, a, 19), b = fold(c, a, b, 4);
  }
  a += word(at), b += word(at + 4), c += word(at + 8);
  const auto last = [](std::uint32_t& x, std::uint32_t y, int r) { x = (x ^ y) - std::rotl(y, r); };
  last(c, b, 14), last(a, c, 11), last(b, a, 25), last(c, b, 16), last(a, c, 4), last(b, a, 14), last(c, b, 24);
  return c;
}

namespace {

constexpr std::uint64_t kMostHeader = 1 << 20;  // bytes of one part of an object's header
constexpr std::size_t kMostObjects = 4096, kMostParts = 256;
constexpr int kDeepest = 4;

/// Not damaged, as far as one can see, but written by another program.
class OtherProgram : public UsageError {
 public:
  using UsageError::UsageError;
};

/// Walks all objects of a file from its root.
class StructureCheck {
 public:
  explicit StructureCheck(const ReadableFile& file)
      : file_(file), size_(static_cast<std::uint64_t>(file.size())), end_(size_) {}

  void run() {
    constexpr std::uint64_t kSuperblock = 48;
    const auto bytes = claim(0, kSuperblock, "the superblock");
    ByteCursor in(bytes, 0);
    in.expect_bytes("\x89HDF\r\n\x1a\n", "the signature is not HDF5's");
    const auto version = in.number(1);
    if (version != 2 && version != 3)
      throw OtherProgram("it is no isohalo checkpoint, or its first bytes are damaged (superblock version " +
                         std::to_string(version) + ", isohalo writes 2 and reads 2 and 3)");
    in.expect(in.number(1) == 8 && in.number(1) == 8, "addresses or lengths that have not 8 bytes");
    in.expect(in.number(1) == 0, "the file was not closed by the program that wrote it");
    in.expect(in.number(8) == 0, "a base address other than 0");
    in.expect(in.number(8) == kNoAddress, "an extension of the superblock");
    const auto end = in.number(8), root = in.number(8);
    check_sum(bytes, 0);
    if (end > size_)
      in.refuse("the file should have " + std::to_string(end) + " bytes, it has " + std::to_string(size_));
    end_ = end;
    object(root, 0);
  }

  /// After `run`: a line for each run of bytes that nothing accounts for. What lies behind a heap is not known; and
  /// a file with chunks is one that another program has rewritten, which leaves what it deletes.
  std::vector<std::string> strays() const {
    std::vector<std::string> lines;
    const auto follow = [&](std::uint64_t from, std::uint64_t to, const std::string& what) {
      const std::uint64_t n = to - from;
      if (n > 0)
        lines.push_back((n == 1 ? "1 byte follows " : std::to_string(n) + " bytes follow ") + what + ", at byte " +
                        std::to_string(from) + ": no part of it");
    };
    std::uint64_t known = 0;
    for (const auto& [at, to] : taken_) {
      if (!heap_ && !chunked_ && !is_zero(known, at))
        lines.push_back("the bytes from " + std::to_string(known) + " to " + std::to_string(at) +
                        " are no part of it and not all zero");
      known = to;
    }
    if (!heap_) follow(known, end_, "its last structure");
    follow(end_, size_, "the end of the HDF5 data");
    return lines;
  }

 private:
  [[noreturn]] static void refuse(std::uint64_t at, const std::string& what) { ByteCursor({}, at).refuse(what); }

  /// Notes that [at, at + bytes) belongs to one structure: two of them never share a byte.
  void reserve(std::uint64_t at, std::uint64_t bytes, const char* what) {
    if (at > end_ || bytes > end_ - at)
      refuse(at, std::string(what) + " of " + std::to_string(bytes) + " bytes lies beyond the end");
    if (bytes == 0) return;
    const auto next = taken_.lower_bound(at);
    const bool before = next != taken_.begin() && std::prev(next)->second > at;
    if (before || (next != taken_.end() && next->first < at + bytes))
      refuse(at, std::string(what) + " lies where something else is");
    taken_.emplace(at, at + bytes);
  }

  std::vector<std::uint8_t> read(std::uint64_t at, std::uint64_t bytes) const {
    std::vector<std::uint8_t> data(bytes);
    file_.read(static_cast<std::int64_t>(at), data.data(), data.size());
    return data;
  }

  bool is_zero(std::uint64_t at, std::uint64_t to) const {
    constexpr std::uint64_t piece = 1 << 20;
    for (; at < to; at += std::min(piece, to - at)) {
      const auto bytes = read(at, std::min(piece, to - at));
      if (std::any_of(bytes.begin(), bytes.end(), [](std::uint8_t b) { return b != 0; })) return false;
    }
    return true;
  }

  std::vector<std::uint8_t> claim(std::uint64_t at, std::uint64_t bytes, const char* what) {
    reserve(at, bytes, what);
    return read(at, bytes);
  }

  void check_sum(std::span<const std::uint8_t> block, std::uint64_t at) const {
    const std::uint64_t place = at + block.size() - 4;
    const std::uint32_t sum = metadata_checksum(block.first(block.size() - 4));
    if (ByteCursor(block.last(4), place).number(4) != sum)
      refuse(place, "a checksum does not match: it should be " + std::to_string(sum));
  }

  void object(std::uint64_t at, int depth) {
    if (depth > kDeepest) refuse(at, "groups are nested more than 4 deep");
    if (++objects_ > kMostObjects) refuse(at, "more than 4096 objects");
    StoredObject o;
    header(at, o);
    for (std::size_t k = 0; k < o.parts.size(); ++k) {  // parts may name further parts
      if (o.parts.size() > kMostParts) refuse(at, "a header of more than 256 parts");
      continuation(o.parts[k].first, o.parts[k].second, o);
    }
    if (o.is_group) {
      if (o.space || o.type || o.layout) refuse(at, "an object that is a group and a dataset");
      heap_ = heap_ || o.heap_of_links;
      if (!o.links.empty() && o.heap_of_links) refuse(at, "a group with two lists of links");
      for (const auto& [name, address] : o.links) object(address, depth + 1);
    } else {
      if (!o.space || !o.type || !o.layout || !o.links.empty())
        refuse(at, "an object that is neither a group nor a dataset");
      data(at, o);
    }
  }

  /// The first part of an object's header.
  void header(std::uint64_t at, StoredObject& o) {
    constexpr std::uint64_t kPrefix = 6 + 16 + 4 + 8;  // at most
    if (at >= end_) refuse(at, "an object beyond the end");
    const auto prefix = read(at, std::min(kPrefix, end_ - at));
    ByteCursor in(prefix, at);
    in.expect_bytes("OHDR", "there is no object header of version 2");
    in.expect(in.number(1) == 2, "an object header of unknown version");
    const auto flags = in.number(1);
    in.expect(flags < 64, "an object header of an unknown form");
    if (flags & 32) in.skip(16);
    if (flags & 16) in.skip(4);
    const auto bytes = in.number(1 << (flags & 3));
    if (bytes > kMostHeader) in.refuse("an object header of " + std::to_string(bytes) + " bytes");
    const std::uint64_t begin = in.position();
    const auto block = claim(at, begin + bytes + 4, "an object header");
    check_sum(block, at);
    creation_order_ = (flags & 4) != 0;
    messages(ByteCursor(std::span(block).subspan(begin, bytes), at + begin), o);
  }

  void continuation(std::uint64_t at, std::uint64_t bytes, StoredObject& o) {
    if (bytes < 8 || bytes > kMostHeader) refuse(at, "a part of a header of " + std::to_string(bytes) + " bytes");
    const auto block = claim(at, bytes, "a part of an object header");
    ByteCursor in(block, at);
    in.expect_bytes("OCHK", "there is no part of an object header");
    check_sum(block, at);
    messages(in.part(bytes - 8), o);
  }

  void messages(ByteCursor in, StoredObject& o) const {
    const std::size_t head = creation_order_ ? 6 : 4;
    while (in.left() >= head) {
      const auto kind = in.number(1), bytes = in.number(2), flags = in.number(1);
      if (creation_order_) in.skip(2);
      in.expect((flags & 0x82) == 0, "a message that is kept elsewhere");
      ByteCursor body = in.part(bytes);
      decode_message(kind, body, o);
      // Messages of version 1 are padded; the others fill their place.
      body.expect(body.left() < 8, "a message with bytes left over");
    }
    const auto gap = in.take(in.left());
    in.expect(std::all_of(gap.begin(), gap.end(), [](std::uint8_t b) { return b == 0; }),
              "a gap that is not empty");
  }

  void data(std::uint64_t at, const StoredObject& o) {
    const ByteCursor here({}, at);
    here.expect(o.fill_bytes == 0 || o.fill_bytes == o.type->bytes, "a fill value of another type than the data");
    const std::uint64_t bytes = checked_product(here, o.space->elements, o.type->bytes);
    const StoredLayout& layout = *o.layout;
    if (layout.kind == StoredLayout::Kind::chunked) {
      chunked_ = true;
      chunks(at, o);
      return;
    }
    here.expect(layout.bytes == bytes, "data of another size than its shape and type");
    if (layout.kind == StoredLayout::Kind::compact || (bytes == 0 && layout.address == kNoAddress)) return;
    reserve(layout.address, bytes, "the data");
  }

  /// Every chunk must be there once, unfiltered, within the data's extents.
  void chunks(std::uint64_t at, const StoredObject& o) {
    const ByteCursor here({}, at);
    const auto& chunk = o.layout->chunk;
    const auto& extents = o.space->extents;
    here.expect(chunk.size() == extents.size() + 1 && chunk.back() == o.type->bytes,
                "chunks of another shape or type than the data");
    std::uint64_t expected = 1;
    for (std::size_t j = 0; j < extents.size(); ++j)
      expected = checked_product(here, expected, (extents[j] + chunk[j] - 1) / chunk[j]);
    std::set<std::vector<std::uint64_t>> found;
    if (o.layout->address != kNoAddress) tree(o.layout->address, -1, o, found);
    here.expect(found.size() == expected, "chunks are missing");
  }

  void tree(std::uint64_t at, int level, const StoredObject& o, std::set<std::vector<std::uint64_t>>& found) {
    constexpr std::uint64_t kMostChildren = 64;
    const auto& chunk = o.layout->chunk;
    const std::uint64_t key = 8 + 8 * chunk.size(), bytes = 24 + kMostChildren * 8 + (kMostChildren + 1) * key;
    const auto block = claim(at, bytes, "a node of chunks");
    ByteCursor in(block, at);
    in.expect_bytes("TREE\1", "there is no tree of chunks");
    const auto own = static_cast<int>(in.number(1));
    in.expect(own <= 8 && (level < 0 || own == level), "a tree of chunks of impossible height");
    const auto used = in.number(2);
    in.expect(used >= 1 && used <= kMostChildren, "a node of an impossible number of chunks");
    in.skip(16);  // siblings: only used to walk, and every node is walked from its parent
    for (std::uint64_t k = 0; k < used; ++k) {
      const auto stored = in.number(4);
      in.expect(in.number(4) == 0, "a chunk that skipped a filter");
      std::vector<std::uint64_t> offset;
      for (std::size_t j = 0; j < chunk.size(); ++j) offset.push_back(in.number(8));
      const auto child = in.number(8);
      if (own > 0) {
        tree(child, own - 1, o, found);
        continue;
      }
      std::uint64_t size = 1;
      for (const auto n : chunk) size *= n;
      in.expect(stored == size, "a chunk of another size");
      for (std::size_t j = 0; j + 1 < chunk.size(); ++j)
        in.expect(offset[j] % chunk[j] == 0 && offset[j] < o.space->extents[j], "a chunk outside the data");
      in.expect(offset.back() == 0 && found.insert(offset).second, "a chunk that comes twice");
      reserve(child, size, "a chunk");
    }
  }

  const ReadableFile& file_;
  const std::uint64_t size_;
  std::uint64_t end_;                             // of what HDF5 knows
  std::map<std::uint64_t, std::uint64_t> taken_;  // from, to
  std::size_t objects_ = 0;
  bool creation_order_ = false;  // in the header that is read now
  bool chunked_ = false;
  bool heap_ = false;  // some names of links are kept in one
};

/// Errors begin with the file's name.
template <class F>
auto naming_damage(const std::filesystem::path& file, F&& work) {
  const ReadableFile in(file);
  try {
    return work(StructureCheck(in));
  } catch (const OtherProgram& e) {
    throw UsageError(file.string() + ": " + e.what());
  } catch (const UsageError& e) {
    throw UsageError(file.string() +
                     " cannot be opened: it is truncated or damaged, or not built as isohalo builds " +
                     "its files (" + e.what() + ")");
  }
}

}  // namespace

}  // namespace detail

void check_file_structure(const std::filesystem::path& file) {
  detail::naming_damage(file, [](detail::StructureCheck check) { check.run(); });
}

std::vector<std::string> stray_bytes(const std::filesystem::path& file) {
  return detail::naming_damage(file, [](detail::StructureCheck check) {
    check.run();
    return check.strays();
  });
}

}  // namespace isohalo
