// Bytes on their way to the network, and the memory of such buffers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dlock::common {

// An empty buffer keeps this much for the next time. One that had to be larger gives its memory back.
inline constexpr std::size_t most_kept_bytes = std::size_t{64} << 10;

inline void empty_buffer(std::string& buffer) {
  buffer.capacity() > most_kept_bytes ? std::string().swap(buffer) : buffer.clear();
}

// Bytes are appended at the end and removed at the front. Even if it is never empty, it takes no more memory than a few
// times the bytes in it.
class SendBuffer {
 public:
  // To append to.
  [[nodiscard]] std::string& end() noexcept { return bytes_; }
  [[nodiscard]] std::string_view bytes() const noexcept { return std::string_view(bytes_).substr(sent_); }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size() - sent_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return bytes_.capacity(); }

  // Removes that many bytes at the front, which were sent.
  void remove(std::size_t count) {
    sent_ += count;
    if (sent_ == bytes_.size()) {
      empty_buffer(bytes_);
    } else if (sent_ >= size()) {
      std::string(bytes()).swap(bytes_);  // copies fewer bytes than were sent since the last time
    } else {
      return;
    }
    sent_ = 0;
  }

 private:
  std::string bytes_;
  std::size_t sent_ = 0;
};

}  // namespace dlock::common
