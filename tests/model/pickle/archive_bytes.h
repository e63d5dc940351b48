// Files of torch.save, made byte by byte: what PyTorch itself would never write among them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sdtune::test {

inline std::string little(std::uint64_t value, unsigned bytes) {
  std::string text;
  for (unsigned i = 0; i < bytes; ++i) text += i < 8 ? static_cast<char>(value >> (8 * i) & 0xFF) : '\0';
  return text;
}

struct ZipOptions {
  std::uint16_t method = 0, flags = 0;
  std::int64_t extra_size = 0;  // added to the sizes that the directory gives
  bool zip64 = false;           // sizes, offsets and the directory's own place in zip64's fields
};

using ZipFiles = std::vector<std::pair<std::string, std::string>>;

inline std::string zip_of(const ZipFiles& files, const ZipOptions& options = {}) {
  std::string zip, directory;
  for (const auto& [name, content] : files) {
    const std::uint64_t at = zip.size(), size = content.size() + static_cast<std::uint64_t>(options.extra_size);
    const std::string sizes = options.zip64 ? std::string(8, '\xFF') : little(size, 4) + little(size, 4);
    std::string extra =
        options.zip64 ? little(1, 2) + little(24, 2) + little(size, 8) + little(size, 8) + little(at, 8) : "";
    zip += little(0x04034b50, 4) + little(45, 2) + little(options.flags, 2) + little(options.method, 2) + little(0, 8) +
           little(content.size(), 4) + little(content.size(), 4) + little(name.size(), 2) + little(0, 2) + name +
           content;
    directory += little(0x02014b50, 4) + little(45, 2) + little(45, 2) + little(options.flags, 2) +
                 little(options.method, 2) + little(0, 8) + sizes + little(name.size(), 2) + little(extra.size(), 2) +
                 little(0, 10) + (options.zip64 ? std::string(4, '\xFF') : little(at, 4)) + name + extra;
  }
  const std::uint64_t start = zip.size(), end = start + directory.size();
  zip += directory;
  if (options.zip64) {
    zip += little(0x06064b50, 4) + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 8) +
           little(files.size(), 8) + little(files.size(), 8) + little(directory.size(), 8) + little(start, 8);
    zip += little(0x07064b50, 4) + little(0, 4) + little(end, 8) + little(1, 4);
    return zip + little(0x06054b50, 4) + little(0, 4) + little(0xFFFF, 2) + little(0xFFFF, 2) + std::string(8, '\xFF') +
           little(0, 2);
  }
  return zip + little(0x06054b50, 4) + little(0, 4) + little(files.size(), 2) + little(files.size(), 2) +
         little(directory.size(), 4) + little(start, 4) + little(0, 2);
}

inline std::string archive_of(const std::string& pickle, const std::string& storage = std::string(16, 's'),
                              const ZipOptions& options = {}) {
  return zip_of({{"a/data.pkl", pickle}, {"a/byteorder", "little"}, {"a/data/0", storage}}, options);
}

inline std::string text(const std::string& value) {
  return "X" + little(value.size(), 4) + value;
}
inline std::string number(std::int64_t value) {
  return "\x8a\x08" + little(static_cast<std::uint64_t>(value), 8);
}

// A tensor of float32 on storage 0 of `elements`.
inline std::string tensor(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides,
                          std::int64_t offset = 0, std::int64_t elements = 4,
                          const std::string& storage = "ctorch\nFloatStorage\n") {
  std::string pickle = "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + storage + text("0") + text("cpu") +
                       number(elements) + "tQ" + number(offset) + "(";
  for (const std::int64_t size : shape) pickle += number(size);
  pickle += "t(";
  for (const std::int64_t stride : strides) pickle += number(stride);
  return pickle + "t\x89" + "ccollections\nOrderedDict\n)RtR";
}

inline std::string mapping(const std::string& items) {
  return "\x80\x02}(" + items + "u.";
}

}  // namespace sdtune::test
