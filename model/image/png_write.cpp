#include "model/image/png_write.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <string_view>

#include "model/base/error.h"

namespace sdtune::model {

namespace {

// Fixed, so that the bytes do not change with a default of zlib's or libpng's.
constexpr int kCompressionLevel = 6;
constexpr std::size_t kMaxKey = 79;

struct Encoder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string bytes;
  std::array<char, 128> reason{};

  ~Encoder() { png_destroy_write_struct(&png, &info); }
};

void take_error(png_structp png, png_const_charp message) {
  auto& encoder = *static_cast<Encoder*>(png_get_error_ptr(png));
  std::snprintf(encoder.reason.data(), encoder.reason.size(), "%s", message);
  png_longjmp(png, 1);
}

void take_warning(png_structp, png_const_charp) {}

void take_bytes(png_structp png, png_bytep bytes, std::size_t count) {
  static_cast<Encoder*>(png_get_io_ptr(png))->bytes.append(reinterpret_cast<const char*>(bytes), count);
}

void flush_nothing(png_structp) {}

bool is_printable_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return c == '\n' || (c >= 0x20 && c < 0x7F); });
}

std::vector<png_text> png_texts(const std::vector<PngText>& texts) {
  std::vector<png_text> result;
  for (const PngText& text : texts) {
    if (text.key.empty() || text.key.size() > kMaxKey || !is_printable_ascii(text.key)) {
      throw DataError("PNG text", "a key is 1 to 79 printable ASCII characters (got '" + text.key + "')");
    }
    png_text entry{};
    const bool ascii = is_printable_ascii(text.value);
    entry.compression = ascii ? PNG_TEXT_COMPRESSION_NONE : PNG_ITXT_COMPRESSION_NONE;
    // libpng's interface is not const-correct: it only reads them.
    entry.key = const_cast<char*>(text.key.c_str());
    entry.text = const_cast<char*>(text.value.c_str());
    (ascii ? entry.text_length : entry.itxt_length) = text.value.size();
    result.push_back(entry);
  }
  return result;
}

// libpng leaves by longjmp: this function holds nothing that must be destroyed.
bool encode(Encoder& encoder, const Image& image, const std::vector<png_text>& texts) {
  if (setjmp(png_jmpbuf(encoder.png)) != 0) return false;
  png_set_write_fn(encoder.png, &encoder, take_bytes, flush_nothing);
  png_set_IHDR(encoder.png, encoder.info, static_cast<png_uint_32>(image.width), static_cast<png_uint_32>(image.height),
               8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_set_compression_level(encoder.png, kCompressionLevel);
  png_set_filter(encoder.png, PNG_FILTER_TYPE_BASE, PNG_FILTER_SUB | PNG_FILTER_UP | PNG_FILTER_AVG | PNG_FILTER_PAETH);
  if (!texts.empty()) png_set_text(encoder.png, encoder.info, texts.data(), static_cast<int>(texts.size()));
  png_write_info(encoder.png, encoder.info);
  const png_size_t row_bytes = static_cast<png_size_t>(image.width) * 3;
  for (std::int64_t y = 0; y < image.height; ++y) {
    png_write_row(encoder.png, image.rgb.data() + static_cast<png_size_t>(y) * row_bytes);
  }
  png_write_end(encoder.png, nullptr);
  return true;
}

}  // namespace

std::string encode_png(const Image& image, const std::vector<PngText>& texts) {
  if (image.width < 1 || image.height < 1 ||
      image.rgb.size() != static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height) * 3) {
    throw DataError("PNG", "the image is empty, or its size does not fit its pixels (got " +
                               std::to_string(image.width) + "x" + std::to_string(image.height) + ")");
  }
  const std::vector<png_text> entries = png_texts(texts);
  Encoder encoder;
  encoder.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &encoder, take_error, take_warning);
  if (encoder.png != nullptr) encoder.info = png_create_info_struct(encoder.png);
  if (encoder.info == nullptr) throw OutOfMemoryError("PNG", "libpng has no memory");
  if (!encode(encoder, image, entries)) throw DataError("PNG", encoder.reason.data());
  return std::move(encoder.bytes);
}

void write_png(FileSystem& files, const std::filesystem::path& path, const Image& image,
               const std::vector<PngText>& texts) {
  write_file_atomically(files, path, encode_png(image, texts));
}

}  // namespace sdtune::model
