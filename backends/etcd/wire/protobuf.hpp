// As much of Protocol Buffers' encoding as etcd's messages need: numbers as varints, and bytes with their length
// (texts, messages in messages). https://protobuf.dev/programming-guides/encoding/. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace dlock::etcd {

// Writes a message. What is zero or empty is left out, as proto3 has it.
//
//   const std::string request = MessageWriter().bytes(1, key).number(3, 5).take();
class MessageWriter {
 public:
  MessageWriter& number(std::uint32_t field, std::uint64_t value);
  MessageWriter& number(std::uint32_t field, std::int64_t value) {
    return number(field, static_cast<std::uint64_t>(value));
  }
  MessageWriter& flag(std::uint32_t field, bool value) { return number(field, std::uint64_t{value}); }
  MessageWriter& bytes(std::uint32_t field, std::string_view value);
  // A message in the message, also where it is empty.
  MessageWriter& message(std::uint32_t field, std::string_view value);
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

// Reads a message, field by field. Fields of no interest are passed over. What the views show lives as long as the
// text.
//
//   MessageReader reader(text);
//   while (reader.next()) {
//     if (reader.field() == 1) name = reader.bytes();
//   }
//   if (reader.broken()) ...
class MessageReader {
 public:
  explicit MessageReader(std::string_view text) noexcept : rest_(text) {}

  // On to the next field. False: that was all, or what follows is no message.
  [[nodiscard]] bool next() noexcept;
  [[nodiscard]] bool broken() const noexcept { return broken_; }
  [[nodiscard]] std::uint32_t field() const noexcept { return field_; }
  // Of the field; one that is of another type than what is asked for breaks the message, and says 0, or nothing.
  [[nodiscard]] std::uint64_t number() noexcept;
  [[nodiscard]] std::int64_t signed_number() noexcept { return static_cast<std::int64_t>(number()); }
  [[nodiscard]] std::string_view bytes() noexcept;

 private:
  [[nodiscard]] bool take_varint(std::uint64_t& value) noexcept;
  [[nodiscard]] bool take_bytes(std::uint64_t count, std::string_view& value) noexcept;
  bool fail() noexcept;

  std::string_view rest_;
  std::uint32_t field_ = 0;
  bool is_number_ = false;
  bool is_bytes_ = false;
  std::uint64_t number_ = 0;
  std::string_view bytes_;
  bool broken_ = false;
};

}  // namespace dlock::etcd
