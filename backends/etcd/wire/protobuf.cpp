#include "backends/etcd/wire/protobuf.hpp"

namespace dlock::etcd {

namespace {

// What a field is encoded as.
enum Type : std::uint32_t { varint = 0, fixed64 = 1, with_length = 2, fixed32 = 5 };

constexpr unsigned type_bits = 3;
constexpr unsigned varint_bits = 7;
constexpr std::uint64_t more_follows = std::uint64_t{1} << varint_bits;

void append_varint(std::string& out, std::uint64_t value) {
  while (value >= more_follows) {
    out += static_cast<char>(value | more_follows);
    value >>= varint_bits;
  }
  out += static_cast<char>(value);
}

void append_tag(std::string& out, std::uint32_t field, Type type) {
  append_varint(out, (std::uint64_t{field} << type_bits) | type);
}

}  // namespace

MessageWriter& MessageWriter::number(std::uint32_t field, std::uint64_t value) {
  if (value == 0) return *this;
  append_tag(out_, field, varint);
  append_varint(out_, value);
  return *this;
}

MessageWriter& MessageWriter::bytes(std::uint32_t field, std::string_view value) {
  return value.empty() ? *this : message(field, value);
}

MessageWriter& MessageWriter::message(std::uint32_t field, std::string_view value) {
  append_tag(out_, field, with_length);
  append_varint(out_, value.size());
  out_ += value;
  return *this;
}

bool MessageReader::fail() noexcept {
  broken_ = true;
  rest_ = {};
  return false;
}

bool MessageReader::take_varint(std::uint64_t& value) noexcept {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += varint_bits) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= (std::uint64_t{byte} & (more_follows - 1)) << shift;
    if ((byte & more_follows) == 0) return true;
  }
  return fail();
}

bool MessageReader::take_bytes(std::uint64_t count, std::string_view& value) noexcept {
  if (count > rest_.size()) return fail();
  value = rest_.substr(0, static_cast<std::size_t>(count));
  rest_.remove_prefix(static_cast<std::size_t>(count));
  return true;
}

bool MessageReader::next() noexcept {
  std::uint64_t tag = 0;
  std::uint64_t count = 0;
  if (broken_ || rest_.empty() || !take_varint(tag)) return false;
  if (tag >> (32 + type_bits) != 0 || tag >> type_bits == 0) return fail();
  field_ = static_cast<std::uint32_t>(tag >> type_bits);
  const auto type = static_cast<std::uint32_t>(tag & ((1U << type_bits) - 1));
  is_number_ = type == varint;
  is_bytes_ = type == with_length;
  number_ = 0;
  bytes_ = {};
  switch (type) {
    case varint:
      return take_varint(number_);
    case with_length:
      return take_varint(count) && take_bytes(count, bytes_);
    case fixed64:
      return take_bytes(sizeof(std::uint64_t), bytes_);
    case fixed32:
      return take_bytes(sizeof(std::uint32_t), bytes_);
    default:
      return fail();  // groups, which nobody uses any more
  }
}

std::uint64_t MessageReader::number() noexcept {
  if (!is_number_) fail();
  return is_number_ ? number_ : 0;
}

std::string_view MessageReader::bytes() noexcept {
  if (!is_bytes_) fail();
  return is_bytes_ ? bytes_ : std::string_view();
}

}  // namespace dlock::etcd
