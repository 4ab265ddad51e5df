#include "framework/io/hdf5_messages.hpp"

#include <algorithm>
#include <cstring>

#include "datatypes/error.hpp"

namespace isohalo::detail {

namespace {
constexpr std::uint64_t kMost = std::uint64_t{1} << 53;
constexpr std::uint64_t kMostText = 65535;
}  // namespace

void ByteCursor::refuse(const std::string& what) const {
  throw UsageError("at byte " + std::to_string(place_ + at_) + ": " + what);
}

std::span<const std::uint8_t> ByteCursor::take(std::uint64_t bytes) {
  if (bytes > left()) refuse("it ends within a structure of " + std::to_string(bytes) + " bytes");
  const auto found = bytes_.subspan(at_, bytes);
  at_ += bytes;
  return found;
}

std::uint64_t ByteCursor::number(int bytes) {
  std::uint64_t value = 0;
  const auto raw = take(static_cast<std::uint64_t>(bytes));
  for (std::size_t k = raw.size(); k-- > 0;) value = value << 8 | raw[k];
  return value;
}

ByteCursor ByteCursor::part(std::uint64_t bytes) {
  const std::uint64_t begin = place_ + at_;
  return {take(bytes), begin};
}

void ByteCursor::expect_bytes(std::string_view expected, const char* what) {
  const auto found = take(expected.size());
  expect(std::memcmp(found.data(), expected.data(), expected.size()) == 0, what);
}

std::uint64_t checked_product(const ByteCursor& in, std::uint64_t a, std::uint64_t b) {
  in.expect(a == 0 || b <= kMost / a, "an array of more than 2^53 elements");
  return a * b;
}

namespace {

StoredSpace decode_space(ByteCursor& in) {
  const auto version = in.number(1), rank = in.number(1), flags = in.number(1);
  in.expect(version == 1 || version == 2, "a dataspace of unknown version");
  in.expect(rank <= 32 && flags <= 1, "a dataspace of an unknown form");
  StoredSpace space;
  if (version == 1) {
    in.skip(5);
  } else {
    const auto type = in.number(1);
    in.expect(type <= 2 && (type == 1) == (rank > 0), "a dataspace of an unknown form");
    if (type == 2) space.elements = 0;  // without a value
  }
  for (std::uint64_t j = 0; j < rank; ++j) space.extents.push_back(in.number(8));
  for (std::uint64_t j = 0; flags && j < rank; ++j)
    in.expect(in.number(8) >= space.extents[j], "a dataspace larger than its maximum");
  for (const auto n : space.extents) {
    in.expect(n <= kMost, "an array of more than 2^53 elements");
    space.elements = checked_product(in, space.elements, n);
  }
  return space;
}

StoredDatatype decode_datatype(ByteCursor& in) {
  const auto head = in.number(1), bits = in.number(3);
  StoredDatatype type{static_cast<int>(head & 15), in.number(4)};
  in.expect(head >> 4 >= 1 && head >> 4 <= 3, "a datatype of unknown version");
  const auto within = [&](std::uint64_t from, std::uint64_t n, std::uint64_t limit) {
    in.expect(n >= 1 && n <= limit && from <= limit - n, "a number whose bits lie outside it");
  };
  const auto in_element = [&] {
    const auto offset = in.number(2), precision = in.number(2);
    within(offset, precision, 8 * type.bytes);
    return precision;
  };
  if (type.kind == 0) {
    in.expect(bits <= 15, "an integer of an unknown form");
    in.expect(type.bytes == 1 || type.bytes == 2 || type.bytes == 4 || type.bytes == 8, "an integer of odd size");
    in_element();
  } else if (type.kind == 1) {
    in.expect(type.bytes == 2 || type.bytes == 4 || type.bytes == 8, "a floating-point number of odd size");
    in.expect((bits & ~std::uint64_t{0xff3f}) == 0 && (bits >> 4 & 3) <= 2,
              "a floating-point number of an unknown form");
    const auto precision = in_element();
    for (int part = 0; part < 2; ++part) {  // exponent, mantissa
      const auto from = in.number(1);
      within(from, in.number(1), precision);
    }
    within(bits >> 8, 1, precision);
    in.skip(4);  // exponent bias
  } else {
    in.expect(type.kind == 3, "a datatype that is neither a number nor a string of fixed length");
    in.expect(type.bytes >= 1 && type.bytes <= kMostText, "a string of impossible length");
    in.expect((bits & 15) <= 2 && bits >> 4 <= 1, "a string of an unknown form");
  }
  return type;
}

StoredLayout decode_layout(ByteCursor& in) {
  const auto version = in.number(1), kind = in.number(1);
  in.expect(version == 3 || (version == 4 && kind <= 1), "a data layout of unknown version");
  StoredLayout layout;
  if (kind == 0) {
    layout.bytes = in.number(2);
    in.skip(layout.bytes);
  } else if (kind == 1) {
    layout.kind = StoredLayout::Kind::contiguous;
    layout.address = in.number(8);
    layout.bytes = in.number(8);
  } else {
    in.expect(kind == 2, "data that is neither compact nor contiguous nor chunked");
    layout.kind = StoredLayout::Kind::chunked;
    const auto dimensions = in.number(1);
    in.expect(dimensions >= 2 && dimensions <= 33, "chunks of an impossible number of dimensions");
    layout.address = in.number(8);
    std::uint64_t bytes = 1;
    for (std::uint64_t j = 0; j < dimensions; ++j) {
      layout.chunk.push_back(in.number(4));
      in.expect(layout.chunk.back() > 0, "an empty chunk");
      bytes = checked_product(in, bytes, layout.chunk.back());
    }
    in.expect(bytes < std::uint64_t{1} << 32, "a chunk of more than 4 GiB");
  }
  return layout;
}

void decode_link(ByteCursor& in, StoredObject& o) {
  const auto version = in.number(1), flags = in.number(1);
  in.expect(version == 1 && flags < 32, "a link of unknown version");
  if (flags & 8) in.expect(in.number(1) == 0, "a link that is no hard link");
  if (flags & 4) in.skip(8);
  if (flags & 16) in.expect(in.number(1) <= 1, "a link's name in an unknown encoding");
  const auto length = in.number(1 << (flags & 3));
  in.expect(length >= 1 && length <= kMostText, "a link's name of impossible length");
  const auto text = in.take(length);
  const std::string name(text.begin(), text.end());
  in.expect(name.find_first_of(std::string_view("\0/", 2)) == std::string::npos,
            "a link's name with a character that no name has");
  in.expect(name != ".", "a link named \".\"");
  in.expect(o.links.emplace(name, in.number(8)).second, "two links of one name");
  in.expect(in.left() == 0, "a link longer than its name");
}

/// The bytes of the fill value; 0 without one.
std::uint64_t decode_fill(ByteCursor& in) {
  const auto version = in.number(1);
  in.expect(version == 2 || version == 3, "a fill value of unknown version");
  bool defined = false;
  if (version == 2) {
    const auto allocation = in.number(1), time = in.number(1);
    in.expect(allocation >= 1 && allocation <= 3 && time <= 2, "a fill value of an unknown form");
    defined = in.number(1) != 0;
  } else {
    const auto flags = in.number(1);
    in.expect(flags < 64 && (flags & 3) != 0 && (flags >> 2 & 3) != 3 && (flags & 48) != 48,
              "a fill value of an unknown form");
    defined = (flags & 32) != 0;
  }
  const auto bytes = defined ? in.number(4) : 0;
  in.skip(bytes);
  return bytes;
}

/// The attribute's name. Its value is left.
std::string decode_attribute(ByteCursor& in) {
  const auto version = in.number(1), flags = in.number(1);
  in.expect(version >= 1 && version <= 3, "an attribute of unknown version");
  in.expect(version == 1 || flags == 0, "an attribute whose type or shape lies elsewhere");
  const auto name_bytes = in.number(2), type_bytes = in.number(2), space_bytes = in.number(2);
  if (version == 3) in.expect(in.number(1) <= 1, "an attribute's name in an unknown encoding");
  const auto padded = [&](std::uint64_t n) { return version == 1 ? (n + 7) / 8 * 8 : n; };
  in.expect(name_bytes >= 2, "an attribute without a name");
  const auto name = in.take(padded(name_bytes));
  in.expect(std::find(name.begin(), name.end(), 0) - name.begin() == static_cast<std::ptrdiff_t>(name_bytes) - 1,
            "an attribute's name of another length");
  ByteCursor type_in = in.part(padded(type_bytes)), space_in = in.part(padded(space_bytes));
  const StoredDatatype type = decode_datatype(type_in);
  const StoredSpace space = decode_space(space_in);
  in.expect(type_in.left() < 8 && space_in.left() < 8, "an attribute's type or shape of another length");
  const auto bytes = checked_product(in, space.elements, type.bytes);
  in.expect(bytes <= in.left() && in.left() - bytes < 8, "an attribute whose value has another size");
  return {name.begin(), name.begin() + static_cast<std::ptrdiff_t>(name_bytes) - 1};
}

/// Is there a heap of links? Only its address is looked at.
bool decode_link_info(ByteCursor& in) {
  const auto version = in.number(1), flags = in.number(1);
  in.expect(version == 0 && flags < 4, "a list of links of unknown version");
  if (flags & 1) in.skip(8);
  const bool heap = in.number(8) != kNoAddress;
  const bool index = in.number(8) != kNoAddress;
  in.expect(heap == index, "a list of links with half an index");
  if (flags & 2) in.skip(8);
  return heap;
}

void decode_group_info(ByteCursor& in) {
  const auto version = in.number(1), flags = in.number(1);
  in.expect(version == 0 && flags < 4, "a group of unknown version");
  in.skip((flags & 1 ? 4 : 0) + (flags & 2 ? 4 : 0));
}

void decode_attribute_info(ByteCursor& in) {
  const auto version = in.number(1), flags = in.number(1);
  in.expect(version == 0 && flags < 4, "a list of attributes of unknown version");
  if (flags & 1) in.skip(2);
  for (int k = 0; k < (flags & 2 ? 3 : 2); ++k) in.expect(in.number(8) == kNoAddress, "attributes in a heap");
}

template <class T>
void once(ByteCursor& in, std::optional<T>& place, T (*decode)(ByteCursor&)) {
  in.expect(!place.has_value(), "a message that comes twice");
  place = decode(in);
}

}  // namespace

void decode_message(std::uint64_t kind, ByteCursor& in, StoredObject& o) {
  switch (kind) {
    case 0x00:  // nothing
      return in.skip(in.left());
    case 0x01:
      return once(in, o.space, decode_space);
    case 0x02:
      in.expect(!o.is_group, "a message that comes twice");
      o.is_group = true;
      o.heap_of_links = decode_link_info(in);
      return;
    case 0x03:
      return once(in, o.type, decode_datatype);
    case 0x04: {  // fill value, old form
      const auto bytes = in.number(4);
      in.skip(bytes);
      o.fill_bytes = std::max(o.fill_bytes, bytes);
      return;
    }
    case 0x05:
      o.fill_bytes = std::max(o.fill_bytes, decode_fill(in));
      return;
    case 0x06:
      return decode_link(in, o);
    case 0x08:
      return once(in, o.layout, decode_layout);
    case 0x0a:
      return decode_group_info(in);
    case 0x0c:
      in.expect(o.attributes.insert(decode_attribute(in)).second, "two attributes of one name");
      return in.skip(in.left());
    case 0x10: {
      const auto address = in.number(8);
      o.parts.emplace_back(address, in.number(8));
      return;
    }
    case 0x12:  // time of the last change
      in.expect(in.number(1) == 1, "a time of unknown version");
      return in.skip(7);
    case 0x15:
      return decode_attribute_info(in);
    case 0x16:  // number of links to the object
      return in.expect(in.number(1) == 0 && in.number(4) == 1, "an object with several links");
    default:
      in.refuse("a message of kind " + std::to_string(kind) + ", which no checkpoint has");
  }
}

}  // namespace isohalo::detail
