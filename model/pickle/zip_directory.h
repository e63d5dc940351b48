// The directory of a zip file. Treated as hostile. Format: PKWARE's
// APPNOTE.TXT, 4.3 and 4.5.3 (zip64).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace sdtune {

// The bytes of an entry in the file: [begin, begin + size).
struct ZipEntry {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  bool compressed = false;  // the bytes are not the content
};

// Entries by name, folders left out. Names are as stored, and never used as paths. Throws WeightError naming `where`
// and the entry: no directory at the end of the file (a file that was cut off), counts, sizes or offsets that the file
// does not have, a name given twice, entries that are encrypted or on another disk. The checksums are not
// read, because torch.save writes wrong ones where they are switched off.
std::map<std::string, ZipEntry> read_zip_directory(std::span<const std::byte> file, const std::string& where);

}  // namespace sdtune
