#include "model/image/png_decode.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>

#include "model/base/error.h"

namespace sdtune::model {

namespace {

struct PngDecoder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string_view rest;  // not read yet
  DecodedPixels pixels;
  std::vector<png_bytep> rows;
  std::array<char, 128> reason{};

  ~PngDecoder() { png_destroy_read_struct(&png, &info, nullptr); }
};

void note_error(png_structp png, png_const_charp message) {
  auto& decoder = *static_cast<PngDecoder*>(png_get_error_ptr(png));
  std::snprintf(decoder.reason.data(), decoder.reason.size(), "%s", message);
  png_longjmp(png, 1);
}

void drop_warning(png_structp, png_const_charp) {}

void give_bytes(png_structp png, png_bytep to, std::size_t count) {
  auto& decoder = *static_cast<PngDecoder*>(png_get_io_ptr(png));
  if (count > decoder.rest.size()) png_error(png, "it ends early");
  std::copy_n(decoder.rest.begin(), count, to);
  decoder.rest.remove_prefix(count);
}

void ask_for_rgba(PngDecoder& decoder) {
  png_set_expand(decoder.png);  // palettes to colours, fewer bits to 8, a transparent colour to alpha
  png_set_strip_16(decoder.png);
  png_set_gray_to_rgb(decoder.png);
  png_set_add_alpha(decoder.png, 0xFF, PNG_FILLER_AFTER);
  png_set_interlace_handling(decoder.png);
  png_read_update_info(decoder.png, decoder.info);
}

// libpng leaves by longjmp: these functions hold nothing that must be destroyed.
bool read_png_info(PngDecoder& decoder) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  png_set_read_fn(decoder.png, &decoder, give_bytes);
  png_read_info(decoder.png, decoder.info);
  const bool has_color_alpha = (png_get_color_type(decoder.png, decoder.info) & PNG_COLOR_MASK_ALPHA) != 0;
  decoder.pixels.has_alpha = has_color_alpha || png_get_valid(decoder.png, decoder.info, PNG_INFO_tRNS) != 0;
  ask_for_rgba(decoder);
  decoder.pixels.width = png_get_image_width(decoder.png, decoder.info);
  decoder.pixels.height = png_get_image_height(decoder.png, decoder.info);
  return true;
}

bool read_png_rows(PngDecoder& decoder) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  png_read_image(decoder.png, decoder.rows.data());
  png_read_end(decoder.png, nullptr);
  return true;
}

[[noreturn]] void refuse_png(const PngDecoder& decoder, const std::string& where) {
  throw DataError(where, std::string("damaged PNG: its compressed data cannot be decoded: ") + decoder.reason.data(),
                  "copy it again, or open and save it with an image editor");
}

}  // namespace

DecodedPixels decode_png(std::string_view bytes, const std::string& where) {
  PngDecoder decoder;
  decoder.rest = bytes;
  decoder.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &decoder, note_error, drop_warning);
  if (decoder.png != nullptr) decoder.info = png_create_info_struct(decoder.png);
  if (decoder.info == nullptr) throw OutOfMemoryError(where, "libpng has no memory");
  if (!read_png_info(decoder)) refuse_png(decoder, where);
  DecodedPixels& pixels = decoder.pixels;
  pixels.rgba.resize(pixels.row_bytes() * static_cast<std::size_t>(pixels.height));
  for (std::int64_t y = 0; y < pixels.height; ++y) {
    decoder.rows.push_back(pixels.rgba.data() + static_cast<std::size_t>(y) * pixels.row_bytes());
  }
  if (!read_png_rows(decoder)) refuse_png(decoder, where);
  return std::move(pixels);
}

}  // namespace sdtune::model
