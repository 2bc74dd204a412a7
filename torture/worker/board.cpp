#include "torture/worker/board.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>

#include "util/unique_fd.hpp"

namespace dlock::torture {

namespace {

// A trap's values besides the step that it waits for: none, or from `sprung` on the seat that sprung it. One variable
// for both, so that a trap springs atomically.
constexpr std::uint32_t no_trap = 0;
constexpr std::uint32_t sprung = 1024;
constexpr std::uint32_t sprung_by(std::size_t seat) {
  return sprung + static_cast<std::uint32_t>(seat);
}

constexpr int readable_by_owner = 0600;
constexpr std::size_t most_seats = 1024;

}  // namespace

// All zero: an empty board.
struct Board::Page {
  std::atomic<std::uint32_t> trap;
  std::atomic<std::uint32_t> over;
  std::array<Seat, most_seats> seats;
};

Board::Board(const std::filesystem::path& file, std::size_t seats) : size_(seats), bytes_(sizeof(Page)) {
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<Step>::is_always_lock_free);
  static_assert(std::is_trivially_destructible_v<Page>);
  const auto fail = [&] { throw std::system_error(errno, std::generic_category(), file.string()); };
  if (seats > most_seats) throw std::system_error(std::make_error_code(std::errc::invalid_argument), "seats");
  const util::UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, readable_by_owner));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes_)) != 0) fail();
  void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) fail();
  page_ = static_cast<Page*>(memory);
}

Board::~Board() {
  (void)::munmap(page_, bytes_);
}  // cannot fail for mapped memory

Board::Seat& Board::seat(std::size_t index) const noexcept {
  return page_->seats[index];
}

void Board::set_trap(Step step) const noexcept {
  page_->trap.store(static_cast<std::uint32_t>(step));
}

std::optional<std::size_t> Board::caught() const noexcept {
  const std::uint32_t trap = page_->trap.load();
  return trap < sprung ? std::nullopt : std::optional<std::size_t>(trap - sprung);
}

std::optional<std::size_t> Board::remove_trap() const noexcept {
  std::uint32_t trap = page_->trap.load();
  while (trap < sprung) {
    if (page_->trap.compare_exchange_weak(trap, no_trap)) return std::nullopt;
  }
  return trap - sprung;
}

void Board::let_go() const noexcept {
  std::uint32_t trap = page_->trap.load();
  while (trap >= sprung && !page_->trap.compare_exchange_weak(trap, no_trap)) {
  }
}

void Board::call_it_a_day() const noexcept {
  page_->over.store(1);
}

bool Board::day_is_over() const noexcept {
  return page_->over.load() != 0;
}

void Board::reach(std::size_t seat, Step step) const noexcept {
  page_->seats[seat].step.store(step);
  auto trap = static_cast<std::uint32_t>(step);
  if (trap == no_trap || !page_->trap.compare_exchange_strong(trap, sprung_by(seat))) return;
  // The process that set the trap stops this one now. If it stopped itself, it might do so again after let_go().
  while (page_->trap.load() == sprung_by(seat) && !day_is_over()) std::this_thread::yield();
}

}  // namespace dlock::torture
