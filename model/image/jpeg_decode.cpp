#include "model/image/jpeg_decode.h"

// jpeglib.h needs size_t and FILE before it.
#include <csetjmp>
#include <cstddef>
#include <cstdio>

#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <vector>

#include "model/base/error.h"

namespace sdtune::model {

namespace {

// A progressive file may claim any number of scans, each of which costs a pass over all pixels.
constexpr int kMaxScans = 500;

constexpr std::ptrdiff_t kReadAhead = 9;  // bytes: a word of 64 bits, and the zero behind an 0xFF

// libjpeg's own part comes first, so that its callbacks can reach ours.
struct Decoder {
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress;
  std::jmp_buf on_error;
  std::array<char, JMSG_LENGTH_MAX> reason;
  const unsigned char* first;  // of the file's bytes
};

Decoder& decoder_of(j_common_ptr jpeg) {
  return *static_cast<Decoder*>(jpeg->client_data);
}

[[noreturn]] void stop(j_common_ptr jpeg) {
  Decoder& decoder = decoder_of(jpeg);
  decoder.errors.format_message(jpeg, decoder.reason.data());
  std::longjmp(decoder.on_error, 1);
}

// Of JWRN_EXTRANEOUS_DATA: zeros between segments or behind the last scan, which some cameras write, lose no pixel.
// Behind a scan the decoder has taken at most kReadAhead of them before it counts; where it has taken more, it decoded
// them as pixels, as of a copy with a hole.
bool is_padding(const Decoder& decoder) {
  const std::ptrdiff_t skipped = decoder.errors.msg_parm.i[0];
  const int marker = decoder.errors.msg_parm.i[1];
  const unsigned char* const end = decoder.jpeg.src->next_input_byte;
  const bool is_restart = marker >= JPEG_RST0 && marker < JPEG_RST0 + 8;
  if (is_restart || end - decoder.first < skipped) return false;
  const unsigned char* const begin = end - skipped;
  const auto is_zero = [](unsigned char byte) { return byte == 0; };
  if (!std::all_of(begin, end, is_zero)) return false;
  if (decoder.jpeg.input_scan_number == 0) return true;
  return !std::all_of(begin - std::min(begin - decoder.first, kReadAhead + 1), begin, is_zero);
}

// Negative levels are warnings: corrupt data that libjpeg would paint over. The others are trace messages. An unknown
// JFIF version is a warning too, but says nothing about the pixels.
void take_message(j_common_ptr jpeg, int level) {
  if (level >= 0 || jpeg->err->msg_code == JWRN_JFIF_MAJOR) return;
  if (jpeg->err->msg_code == JWRN_EXTRANEOUS_DATA && is_padding(decoder_of(jpeg))) return;
  stop(jpeg);
}

void say_nothing(j_common_ptr) {}

void watch_scans(j_common_ptr jpeg) {
  Decoder& decoder = decoder_of(jpeg);
  if (decoder.jpeg.input_scan_number <= kMaxScans) return;
  std::snprintf(decoder.reason.data(), decoder.reason.size(), "more than %d scans", kMaxScans);
  std::longjmp(decoder.on_error, 1);
}

void prepare(Decoder& decoder) {
  decoder.jpeg.err = jpeg_std_error(&decoder.errors);
  decoder.jpeg.client_data = &decoder;
  decoder.errors.error_exit = stop;
  decoder.errors.emit_message = take_message;
  decoder.errors.output_message = say_nothing;
  decoder.progress = {};
  decoder.progress.progress_monitor = watch_scans;
}

// Reads the header and chooses RGB, or CMYK where the file has four channels. False with `reason` set on an error.
bool begin(Decoder& decoder, std::string_view bytes, unsigned reduction) {
  if (setjmp(decoder.on_error) != 0) return false;
  jpeg_create_decompress(&decoder.jpeg);
  decoder.jpeg.client_data = &decoder;
  decoder.jpeg.progress = &decoder.progress;
  decoder.first = reinterpret_cast<const unsigned char*>(bytes.data());
  jpeg_mem_src(&decoder.jpeg, decoder.first, bytes.size());
  jpeg_read_header(&decoder.jpeg, TRUE);
  decoder.jpeg.out_color_space = decoder.jpeg.num_components == 4 ? JCS_CMYK : JCS_RGB;
  decoder.jpeg.scale_num = 1;
  decoder.jpeg.scale_denom = reduction;
  jpeg_start_decompress(&decoder.jpeg);
  return true;
}

// Fills `rows` (height x width x channels) and reads on to the end mark. False with `reason` set on an error.
bool read_rows(Decoder& decoder, std::uint8_t* rows, std::size_t row_bytes) {
  if (setjmp(decoder.on_error) != 0) return false;
  while (decoder.jpeg.output_scanline < decoder.jpeg.output_height) {
    JSAMPROW row = rows + decoder.jpeg.output_scanline * row_bytes;
    jpeg_read_scanlines(&decoder.jpeg, &row, 1);
  }
  jpeg_finish_decompress(&decoder.jpeg);
  return true;
}

// Adobe stores CMYK inverted. Pillow: channel = (255 - K) - (255 - K) * C / 255, rounded.
void cmyk_to_rgb(const std::vector<std::uint8_t>& inverted, std::vector<std::uint8_t>& rgb) {
  for (std::size_t pixel = 0; pixel < rgb.size() / 3; ++pixel) {
    const int white = inverted[pixel * 4 + 3];
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const int ink = 255 - inverted[pixel * 4 + channel];
      rgb[pixel * 3 + channel] = static_cast<std::uint8_t>(white - (white * ink + 127) / 255);
    }
  }
}

struct DecoderRelease {
  Decoder& decoder;
  ~DecoderRelease() { jpeg_destroy_decompress(&decoder.jpeg); }
};

}  // namespace

Image decode_jpeg(std::string_view bytes, const std::string& where, unsigned reduction) {
  Decoder decoder{};
  prepare(decoder);
  const DecoderRelease release{decoder};
  const auto fail = [&]() {
    throw DataError(where, "truncated or damaged JPEG: " + std::string(decoder.reason.data()),
                    "copy it again, or open and save it with an image editor");
  };
  if (!begin(decoder, bytes, reduction)) fail();
  Image image;
  image.width = decoder.jpeg.output_width;
  image.height = decoder.jpeg.output_height;
  const auto pixels = static_cast<std::size_t>(image.width * image.height);
  image.rgb.resize(pixels * 3);
  const auto channels = static_cast<std::size_t>(decoder.jpeg.output_components);
  if (channels == 3) {
    if (!read_rows(decoder, image.rgb.data(), static_cast<std::size_t>(image.width) * 3)) fail();
    return image;
  }
  std::vector<std::uint8_t> inks(pixels * channels);
  if (!read_rows(decoder, inks.data(), static_cast<std::size_t>(image.width) * channels)) fail();
  cmyk_to_rgb(inks, image.rgb);
  return image;
}

}  // namespace sdtune::model
