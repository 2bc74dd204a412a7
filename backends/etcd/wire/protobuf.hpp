// The part of Protocol Buffers' encoding that etcd's messages use: numbers as varints, and bytes with their length
// (texts, nested messages). https://protobuf.dev/programming-guides/encoding/. No I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace dlock::etcd {

// Writes a message. Leaves out zeros and empty bytes, as proto3 does.
//
//   const std::string request = MessageWriter().bytes(1, key).number(3, 5).take();
class MessageWriter {
 public:
  MessageWriter& number(std::uint32_t field, std::uint64_t value);
  MessageWriter& number(std::uint32_t field, std::int64_t value) {
    return number(field, static_cast<std::uint64_t>(value));
  }
  MessageWriter& flag(std::uint32_t field, bool value) { return number(field, std::uint64_t{value}); }
  MessageWriter& bytes(std::uint32_t field, std::string_view value) {
    return value.empty() ? *this : message(field, value);
  }
  // A nested message, even an empty one.
  MessageWriter& message(std::uint32_t field, std::string_view value);
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

// Reads a message, field by field; a caller ignores the fields that it does not know. Views live as long as the text.
//
//   MessageReader reader(text);
//   while (reader.next()) {
//     if (reader.field() == 1) name = reader.bytes();
//   }
//   if (reader.broken()) ...
class MessageReader {
 public:
  explicit MessageReader(std::string_view text) noexcept : rest_(text) {}

  // Goes to the next field. False at the end of the message, or where it is malformed.
  [[nodiscard]] bool next() noexcept;
  [[nodiscard]] bool broken() const noexcept { return broken_; }
  [[nodiscard]] std::uint32_t field() const noexcept { return field_; }
  // The value of the field. If the field has a different type, these return zero or nothing, and the message is broken.
  [[nodiscard]] std::uint64_t number() noexcept;
  [[nodiscard]] std::int64_t signed_number() noexcept { return static_cast<std::int64_t>(number()); }
  [[nodiscard]] std::string_view bytes() noexcept;

 private:
  [[nodiscard]] bool take_varint(std::uint64_t& value) noexcept;
  [[nodiscard]] bool take_bytes(std::uint64_t count, std::string_view& value) noexcept;
  bool fail() noexcept;

  std::string_view rest_;
  std::uint32_t field_ = 0;
  std::uint32_t type_ = 0;
  std::uint64_t number_ = 0;  // of a varint
  std::string_view bytes_;    // of bytes with their length
  bool broken_ = false;
};

}  // namespace dlock::etcd
