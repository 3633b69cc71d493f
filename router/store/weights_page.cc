// weights_page.cc: reads and writes the page of weights: one header, then a kilobyte for each service.
//
// The header and the names are written once and covered by a digest. A word stands there twice, plain and inverted: where the two differ
// (killed between the two stores, or damaged) the word is unknown, and what is unknown counts as weight 0. Cause, reason and epoch are written
// before the word that they explain.

#include "router/store/weights_page.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "router/store/digest.h"
#include "runtime/base/file.h"
#include "runtime/base/utf8.h"

namespace serin::store {
namespace {

constexpr uint64_t kMagic = 0x7365726e77743031;  // "sernwt01": the last two are the layout's version

struct Header {
  uint64_t magic = kMagic;
  uint64_t slots = 0;
  uint64_t names = 0;  // digest of every slot's Names
  uint64_t unused[5] = {};
};
static_assert(sizeof(Header) == 64);

struct Names {
  uint64_t service = 0;
  uint64_t version_count = 0;
  uint64_t versions[kMaxVersions] = {};
};

struct Record {
  Names names;
  std::atomic<uint64_t> word{0}, inverted{~uint64_t{0}}, epoch{0};
  char cause[72] = {};
  char reason[400] = {};
};
static_assert(sizeof(Record) == 1016);
static_assert(std::atomic<uint64_t>::is_always_lock_free, "the word is shared between processes");

Record* records(void* memory) { return reinterpret_cast<Record*>(static_cast<char*>(memory) + sizeof(Header)); }

uint64_t digest_of(const Names& names, uint64_t from) { return digest({reinterpret_cast<const char*>(&names), sizeof(names)}, from); }

template <size_t kSize>
void copy_text(char (&to)[kSize], std::string_view text) {
  const size_t n = utf8_prefix(text, kSize - 1).copy(to, kSize - 1);
  std::memset(to + n, 0, kSize - n);
}

template <size_t kSize>
std::string read_text(const char (&from)[kSize]) {
  return {from, ::strnlen(from, kSize)};
}

/// The bytes of a page file as a Record array; the digest has been checked.
std::optional<std::span<const Record>> parse(std::string& bytes) {
  if (bytes.size() < sizeof(Header)) return std::nullopt;
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const size_t room = (bytes.size() - sizeof(Header)) / sizeof(Record);
  if (header.magic != kMagic || header.slots > room) return std::nullopt;
  const std::span<const Record> found(records(bytes.data()), header.slots);
  uint64_t names = kDigestStart;
  for (const Record& record : found) names = digest_of(record.names, names);
  if (names != header.names) return std::nullopt;
  return found;
}

Error system_error(const std::string& path, const char* step) {
  const Code code = errno == EACCES || errno == EPERM || errno == EROFS ? Code::kPermissionDenied : Code::kIo;
  return Error{code, fmt::format("weights page {}: {}: {}", path, step, std::strerror(errno))};
}

}  // namespace

std::optional<WeightsPage::Found> WeightsPage::read(const std::string& path, std::string_view service) {
  auto bytes = read_file(path, size_t{16} << 20);
  if (!bytes) return std::nullopt;
  const auto found = parse(*bytes);
  if (!found) return std::nullopt;
  const auto record = std::ranges::find(*found, digest(service), [](const Record& r) { return r.names.service; });
  if (record == found->end() || record->word != ~record->inverted || record->names.version_count > kMaxVersions) return std::nullopt;
  const Names& names = record->names;
  return Found{.word = record->word,
               .epoch = record->epoch,
               .versions = {names.versions, names.versions + names.version_count},
               .cause = read_text(record->cause),
               .reason = read_text(record->reason)};
}

Result<WeightsPage> WeightsPage::create(const std::string& path, std::span<const Slot> slots) {
  const size_t bytes = sizeof(Header) + slots.size() * sizeof(Record);
  const std::string aside = path + ".new";
  ::unlink(aside.c_str());  // left by a start that was cut short
  const int fd = ::open(aside.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return system_error(aside, "cannot be created");
  // Reserved now: a write through a mapping has no way to report a full disk but SIGBUS.
  const int reserved = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  void* memory = reserved == 0 ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  ::close(fd);
  if (reserved != 0) errno = reserved;
  if (memory == MAP_FAILED) return system_error(aside, "cannot be mapped");
  WeightsPage page(memory, bytes);

  auto* header = new (memory) Header{.slots = slots.size(), .names = kDigestStart};
  for (size_t i = 0; i < slots.size(); ++i) {
    auto* record = new (records(memory) + i) Record;
    record->names.service = digest(slots[i].service);
    record->names.version_count = slots[i].versions.size();
    std::ranges::transform(slots[i].versions, record->names.versions, [](const std::string& name) { return digest(name); });
    header->names = digest_of(record->names, header->names);
    page.store(i, slots[i].word, slots[i].epoch);
  }
  if (::rename(aside.c_str(), path.c_str()) != 0) return system_error(path, "cannot be replaced");
  return page;
}

WeightsPage::WeightsPage(WeightsPage&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

WeightsPage& WeightsPage::operator=(WeightsPage&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

WeightsPage::~WeightsPage() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

const std::atomic<uint64_t>& WeightsPage::word(size_t slot) const { return records(memory_)[slot].word; }

void WeightsPage::store(size_t slot, uint64_t word, uint64_t epoch, std::string_view cause, std::string_view reason) {
  Record& record = records(memory_)[slot];
  copy_text(record.cause, cause);
  copy_text(record.reason, reason);
  record.epoch.store(epoch, std::memory_order_release);
  record.inverted.store(~word, std::memory_order_release);
  record.word.store(word, std::memory_order_release);
}

}  // namespace serin::store
