// build_id.cc: finds the build ID of the file that contains this code, in the notes that are loaded with it.

#include "kernels/cuda/build_id.h"

#include <link.h>

#include <cstdint>
#include <cstring>

namespace serin::kernels::cuda {

namespace {

constexpr size_t kNoteAlignment = 4;
const unsigned char kHere = 0;  ///< in the file that holds these kernels; what else is in it is found from here

size_t padded(size_t bytes) { return (bytes + kNoteAlignment - 1) / kNoteAlignment * kNoteAlignment; }

std::string in_hexadecimal(const unsigned char* bytes, size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) text += {kDigits[bytes[i] / 16], kDigits[bytes[i] % 16]};
  return text;
}

/// Empty where these notes are others.
std::string find_in_notes(const unsigned char* at, const unsigned char* end) {
  while (at + sizeof(ElfW(Nhdr)) <= end) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof(note));
    const unsigned char* const name = at + sizeof(note);
    const unsigned char* const bytes = name + padded(note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
      return in_hexadecimal(bytes, note.n_descsz);
    at = bytes + padded(note.n_descsz);
  }
  return {};
}

bool lies_in(const dl_phdr_info& file, uintptr_t address) {
  for (int i = 0; i < file.dlpi_phnum; ++i) {
    const auto& part = file.dlpi_phdr[i];
    const uintptr_t begin = file.dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && begin <= address && address < begin + part.p_memsz) return true;
  }
  return false;
}

int look_into(dl_phdr_info* file, size_t, void* found) {
  if (!lies_in(*file, reinterpret_cast<uintptr_t>(&kHere))) return 0;
  auto& id = *static_cast<std::string*>(found);
  for (int i = 0; i < file->dlpi_phnum && id.empty(); ++i) {
    const auto& part = file->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const unsigned char* const begin = &kHere + (file->dlpi_addr + part.p_vaddr - reinterpret_cast<uintptr_t>(&kHere));
    id = find_in_notes(begin, begin + part.p_memsz);
  }
  return 1;  // no other file is asked
}

}  // namespace

std::string build_id() {
  std::string id;
  dl_iterate_phdr(look_into, &id);
  return id.empty() ? "unknown" : id;
}

}  // namespace serin::kernels::cuda
