#include "backends/etcd/wire/protobuf.hpp"

#include <cstddef>

namespace dlock::etcd {

namespace {

enum Type : std::uint32_t { varint = 0, fixed64 = 1, with_length = 2, fixed32 = 5 };

constexpr unsigned type_bits = 3;
constexpr unsigned varint_bits = 7;
constexpr std::uint64_t more_follows = std::uint64_t{1} << varint_bits;

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= more_follows; value >>= varint_bits) out += static_cast<char>(value | more_follows);
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
  rest_.remove_prefix(value.size());
  return true;
}

bool MessageReader::next() noexcept {
  std::uint64_t tag = 0;
  std::uint64_t count = 0;
  std::string_view skipped;
  if (rest_.empty() || !take_varint(tag)) return false;
  if (tag >> (32 + type_bits) != 0 || tag >> type_bits == 0) return fail();
  field_ = static_cast<std::uint32_t>(tag >> type_bits);
  type_ = static_cast<std::uint32_t>(tag & ((1U << type_bits) - 1));
  switch (type_) {
    case varint:
      return take_varint(number_);
    case with_length:
      return take_varint(count) && take_bytes(count, bytes_);
    case fixed64:
      return take_bytes(sizeof(std::uint64_t), skipped);
    case fixed32:
      return take_bytes(sizeof(std::uint32_t), skipped);
    default:
      return fail();  // the obsolete groups
  }
}

std::uint64_t MessageReader::number() noexcept {
  return type_ == varint || fail() ? number_ : 0;
}

std::string_view MessageReader::bytes() noexcept {
  return type_ == with_length || fail() ? bytes_ : std::string_view();
}

}  // namespace dlock::etcd
