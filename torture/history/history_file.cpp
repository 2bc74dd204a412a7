#include "torture/history/history_file.hpp"

#include <fcntl.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

#include "torture/rig/system_call.hpp"

namespace dlock::torture {
namespace {

constexpr int readable_by_all = 0644;

}  // namespace

HistoryFile::HistoryFile(const std::filesystem::path& file)
    : fd_(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, readable_by_all)) {
  if (!fd_) rig::fail("cannot open " + file.string());
}

void HistoryFile::note(const Event& event) {
  const std::string line = to_line(event) + '\n';
  const ssize_t written = ::write(fd_.get(), line.data(), line.size());
  if (written < 0) rig::fail("cannot write the history");
  if (static_cast<std::size_t>(written) != line.size()) {
    throw std::system_error(std::make_error_code(std::errc::no_space_on_device), "cannot write the history");
  }
}

std::vector<Event> read_history(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) rig::fail("cannot read " + file.string());
  std::vector<Event> events;
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (in.eof()) break;  // torn: the line has no end
    std::string why;
    auto event = parse_line(line, why);
    if (!event) throw std::runtime_error(file.string() + ", line " + std::to_string(number) + ": " + why);
    events.push_back(*std::move(event));
  }
  if (in.bad()) rig::fail("cannot read " + file.string());
  return events;
}

std::vector<Event> read_histories(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  std::error_code ec;
  const std::filesystem::directory_iterator entries(directory, ec);
  if (ec) throw std::system_error(ec, "cannot read " + directory.string());
  for (const auto& entry : entries) {
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  }
  if (files.empty()) throw std::runtime_error("no history (*.jsonl) in " + directory.string());
  std::sort(files.begin(), files.end());
  std::vector<Event> events;
  for (const auto& file : files) {
    auto more = read_history(file);
    events.insert(events.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  sort_by_time(events);
  return events;
}

void sort_by_time(std::vector<Event>& events) {
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.at < b.at; });
}

}  // namespace dlock::torture
