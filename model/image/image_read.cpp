#include "model/image/image_read.h"

#include <algorithm>
#include <opencv2/imgcodecs.hpp>
#include <utility>

#include "model/base/error.h"
#include "model/base/file_system.h"
#include "model/image/heic_decode.h"
#include "model/image/jpeg_decode.h"
#include "model/image/orientation.h"
#include "model/image/png_chunks.h"
#include "model/image/resample.h"

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

Image alpha_of(const cv::Mat& mat) {
  Image alpha{mat.cols, mat.rows, {}};
  alpha.rgb.reserve(mat.total() * 3);
  for (int y = 0; y < mat.rows; ++y) {
    for (int x = 0; x < mat.cols; ++x) {
      const int value = mat.depth() == CV_16U ? mat.at<cv::Vec4w>(y, x)[3] >> 8 : mat.at<cv::Vec4b>(y, x)[3];
      alpha.rgb.insert(alpha.rgb.end(), 3, static_cast<std::uint8_t>(value));
    }
  }
  return alpha;
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

Image on_white(const HeicPixels& pixels) {
  Image image{pixels.size.width, pixels.size.height, {}};
  image.rgb.reserve(pixels.rgba.size() / 4 * 3);
  for (std::size_t i = 0; i < pixels.rgba.size(); i += 4) {
    for (std::size_t channel = 0; channel < 3; ++channel) {
      image.rgb.push_back(on_white(pixels.rgba[i + channel], pixels.rgba[i + 3]));
    }
  }
  return image;
}

Image alpha_of(const HeicPixels& pixels) {
  Image alpha{pixels.size.width, pixels.size.height, {}};
  alpha.rgb.reserve(pixels.rgba.size() / 4 * 3);
  for (std::size_t i = 3; i < pixels.rgba.size(); i += 4) alpha.rgb.insert(alpha.rgb.end(), 3, pixels.rgba[i]);
  return alpha;
}

// The pixels before the EXIF turn.
Image decode_stored(std::string_view bytes, const ImageInfo& info, const std::string& where) {
  Image stored;
  if (info.format == ImageFormat::kJpeg) {
    stored = decode_jpeg(bytes, where);
  } else if (info.format == ImageFormat::kPng) {
    stored = decode_png(bytes, where);
  } else if (info.format == ImageFormat::kHeic) {
    stored = on_white(decode_heic(bytes, where));
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

Preview preview_image(std::string_view bytes, const std::string& where, std::int64_t longest) {
  Preview preview;
  preview.info = probe_image(bytes, where);
  const std::int64_t side = std::max(preview.info.width, preview.info.height);
  if (preview.info.format == ImageFormat::kJpeg) {
    unsigned reduction = 1;
    // A little less than asked for is seen as well, and takes half the time.
    while (reduction < 8 && 4 * side / (2 * reduction) >= 3 * longest) reduction *= 2;
    preview.image = decode_jpeg(bytes, where, reduction);
  } else {
    preview.image = decode_stored(bytes, preview.info, where);
  }
  const std::int64_t decoded = std::max(preview.image.width, preview.image.height);
  if (decoded > longest) {
    const auto scaled = [&](std::int64_t extent) { return std::max<std::int64_t>(1, extent * longest / decoded); };
    preview.image =
        resized(preview.image, scaled(preview.image.width), scaled(preview.image.height), Filter::kBilinear);
  }
  preview.image = oriented(std::move(preview.image), preview.info.orientation);
  return preview;
}

std::optional<Image> read_alpha(const std::filesystem::path& path) {
  const std::string bytes = read_file(path, kMaxFileBytes);
  const ImageInfo info = probe_image(bytes, path.string());
  if (info.format == ImageFormat::kJpeg) return std::nullopt;
  if (info.format == ImageFormat::kHeic) {
    const HeicPixels pixels = decode_heic(bytes, path.string());
    return pixels.has_alpha ? std::optional(alpha_of(pixels)) : std::nullopt;
  }
  const bool is_png = info.format == ImageFormat::kPng;
  const std::string bare = is_png ? bare_png(read_png_chunks(bytes, path.string())) : bytes;
  const cv::Mat decoded = decode_by_opencv(bare, info.format, path.string());
  if (decoded.channels() != 4) return std::nullopt;
  return oriented(alpha_of(decoded), info.orientation);
}

Image read_image(const std::filesystem::path& path) {
  return decode_image(read_file(path, kMaxFileBytes), path.string());
}

}  // namespace sdtune::model
