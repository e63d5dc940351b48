#include "model/image/image_read.h"

#include <opencv2/imgcodecs.hpp>

#include "model/base/error.h"
#include "model/base/file_system.h"
#include "model/image/jpeg_decode.h"
#include "model/image/orientation.h"
#include "model/image/png_chunks.h"

namespace sdtune::model {

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;

std::uint8_t on_white(int value, int alpha) {
  return static_cast<std::uint8_t>((value * alpha + 255 * (255 - alpha) + 127) / 255);
}

// One pixel of OpenCV's (grey, BGR or BGRA; `shift` takes 16 bits to 8) as RGB on white.
template <typename Value>
void convert_row(const Value* from, std::uint8_t* to, int width, int channels, int shift) {
  for (int x = 0; x < width; ++x, from += channels, to += 3) {
    const int alpha = channels == 4 ? from[3] >> shift : 255;
    for (int channel = 0; channel < 3; ++channel) {
      to[channel] = on_white(from[channels == 1 ? 0 : 2 - channel] >> shift, alpha);
    }
  }
}

Image from_opencv(const cv::Mat& mat) {
  Image image;
  image.width = mat.cols;
  image.height = mat.rows;
  image.rgb.resize(mat.total() * 3);
  for (int y = 0; y < mat.rows; ++y) {
    std::uint8_t* to = image.rgb.data() + static_cast<std::size_t>(y) * static_cast<std::size_t>(mat.cols) * 3;
    if (mat.depth() == CV_16U) {
      convert_row(mat.ptr<std::uint16_t>(y), to, mat.cols, mat.channels(), 8);
    } else {
      convert_row(mat.ptr<std::uint8_t>(y), to, mat.cols, mat.channels(), 0);
    }
  }
  return image;
}

// Pixels as they are stored, with alpha and with 16 bits. IMREAD_UNCHANGED also keeps OpenCV from turning by EXIF.
cv::Mat decode_by_opencv(std::string_view bytes, ImageFormat format, const std::string& where) {
  const cv::Mat encoded(1, static_cast<int>(bytes.size()), CV_8UC1, const_cast<char*>(bytes.data()));
  cv::Mat decoded;
  try {
    decoded = cv::imdecode(encoded, cv::IMREAD_UNCHANGED);
  } catch (const cv::Exception& error) {
    throw DataError(where, "damaged " + format_name(format) + ": " + error.err);
  }
  const int depth = decoded.depth();
  const int channels = decoded.channels();
  if (decoded.empty() || (depth != CV_8U && depth != CV_16U) || channels == 2 || channels > 4) {
    throw DataError(where, "damaged " + format_name(format) + ": its compressed data cannot be decoded",
                    "copy it again, or open and save it with an image editor");
  }
  return decoded;
}

// OpenCV forgets that a grey level can stand for "transparent": paint it white.
void whiten_clear_grey(cv::Mat& grey, const PngFile& file) {
  if (!file.grey_clear || grey.channels() != 1) return;
  const int level = file.bit_depth < 8 ? *file.grey_clear * 255 / ((1 << file.bit_depth) - 1) : *file.grey_clear;
  if (grey.depth() == CV_16U) {
    for (auto pixel = grey.begin<std::uint16_t>(); pixel != grey.end<std::uint16_t>(); ++pixel) {
      if (*pixel == level) *pixel = 0xFFFF;
    }
    return;
  }
  for (auto pixel = grey.begin<std::uint8_t>(); pixel != grey.end<std::uint8_t>(); ++pixel) {
    if (*pixel == level) *pixel = 0xFF;
  }
}

Image decode_png(std::string_view bytes, const std::string& where) {
  const PngFile file = read_png_chunks(bytes, where);
  cv::Mat decoded = decode_by_opencv(bare_png(file), ImageFormat::kPng, where);
  whiten_clear_grey(decoded, file);
  return from_opencv(decoded);
}

// The pixels before the EXIF turn.
Image decode_stored(std::string_view bytes, const ImageInfo& info, const std::string& where) {
  Image stored;
  if (info.format == ImageFormat::kJpeg) {
    stored = decode_jpeg(bytes, where);
  } else if (info.format == ImageFormat::kPng) {
    stored = decode_png(bytes, where);
  } else {
    stored = from_opencv(decode_by_opencv(bytes, info.format, where));
  }
  if (stored.width != info.width || stored.height != info.height) {
    throw DataError(where, "damaged " + format_name(info.format) + ": its header and its pixels differ in size");
  }
  return stored;
}

}  // namespace

Image decode_image(std::string_view bytes, const std::string& where) {
  const ImageInfo info = probe_image(bytes, where);
  return oriented(decode_stored(bytes, info, where), info.orientation);
}

ImageInfo verify_image(std::string_view bytes, const std::string& where) {
  const ImageInfo info = probe_image(bytes, where);
  if (info.format == ImageFormat::kJpeg) {
    decode_jpeg(bytes, where, 8);
  } else {
    decode_stored(bytes, info, where);
  }
  return info;
}

Image read_image(const std::filesystem::path& path) {
  return decode_image(read_file(path, kMaxFileBytes), path.string());
}

}  // namespace sdtune::model
