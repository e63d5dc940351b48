#include "model/image/heic_decode.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "model/base/error.h"
#include "model/image/foreign_format.h"

namespace sdtune::model {

namespace {

using std::string_view_literals::operator""sv;

constexpr const char* kLibrary = "libheif.so.1";

// What is used of libheif's C interface (libheif/heif.h, unchanged since 1.1); its numbers are part of that.
constexpr int kColorspaceRgb = 1;
constexpr int kChromaInterleavedRgba = 11;
constexpr int kChannelInterleaved = 10;

struct HeifError {
  int code;
  int subcode;
  const char* message;
};
using Context = void;
using Handle = void;
using Picture = void;

struct HeicLibrary {
  Context* (*context_alloc)() = nullptr;
  void (*context_free)(Context*) = nullptr;
  HeifError (*read_from_memory)(Context*, const void*, std::size_t, const void* options) = nullptr;
  HeifError (*primary_handle)(Context*, Handle**) = nullptr;
  void (*handle_release)(const Handle*) = nullptr;
  int (*handle_width)(const Handle*) = nullptr;
  int (*handle_height)(const Handle*) = nullptr;
  int (*handle_has_alpha)(const Handle*) = nullptr;
  HeifError (*decode)(const Handle*, Picture**, int colorspace, int chroma, const void* options) = nullptr;
  void (*picture_release)(const Picture*) = nullptr;
  int (*picture_width)(const Picture*, int channel) = nullptr;
  int (*picture_height)(const Picture*, int channel) = nullptr;
  const std::uint8_t* (*plane)(const Picture*, int channel, int* stride) = nullptr;
};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// Never closed: decoders keep threads and tables.
std::unique_ptr<HeicLibrary> open_library(const char* name) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  auto heif = std::make_unique<HeicLibrary>();
  const bool is_whole = find(library, "heif_context_alloc", heif->context_alloc) &&
                        find(library, "heif_context_free", heif->context_free) &&
                        find(library, "heif_context_read_from_memory_without_copy", heif->read_from_memory) &&
                        find(library, "heif_context_get_primary_image_handle", heif->primary_handle) &&
                        find(library, "heif_image_handle_release", heif->handle_release) &&
                        find(library, "heif_image_handle_get_width", heif->handle_width) &&
                        find(library, "heif_image_handle_get_height", heif->handle_height) &&
                        find(library, "heif_image_handle_has_alpha_channel", heif->handle_has_alpha) &&
                        find(library, "heif_decode_image", heif->decode) &&
                        find(library, "heif_image_release", heif->picture_release) &&
                        find(library, "heif_image_get_width", heif->picture_width) &&
                        find(library, "heif_image_get_height", heif->picture_height) &&
                        find(library, "heif_image_get_plane_readonly", heif->plane);
  return is_whole ? std::move(heif) : nullptr;
}

const HeicLibrary* library() {
  static const std::unique_ptr<HeicLibrary> heif = open_library(kLibrary);
  return heif.get();
}

// The main picture of a file. Holds on to `bytes`.
class HeicFile {
 public:
  HeicFile(std::string_view bytes, const std::string& where) : where_(where) {
    if (library() == nullptr) {
      const ForeignFormat foreign = name_foreign_format(bytes);
      throw DataError(where,
                      "this is " + foreign.name + ", and libheif is not here to read it (allowed: JPEG, PNG, WebP)",
                      "install it (apt-get install libheif1), or " + foreign.hint);
    }
    context_.reset(library()->context_alloc());
    check(library()->read_from_memory(context_.get(), bytes.data(), bytes.size(), nullptr), bytes);
    Handle* handle = nullptr;
    check(library()->primary_handle(context_.get(), &handle), bytes);
    handle_.reset(handle);
  }

  HeicSize size() const { return {library()->handle_width(handle_.get()), library()->handle_height(handle_.get())}; }

  HeicPixels pixels(std::string_view bytes) const {
    Picture* decoded = nullptr;
    check(library()->decode(handle_.get(), &decoded, kColorspaceRgb, kChromaInterleavedRgba, nullptr), bytes);
    const std::unique_ptr<Picture, PictureRelease> picture(decoded);
    HeicPixels pixels;
    pixels.size = {library()->picture_width(decoded, kChannelInterleaved),
                   library()->picture_height(decoded, kChannelInterleaved)};
    pixels.has_alpha = library()->handle_has_alpha(handle_.get()) != 0;
    int stride = 0;
    const std::uint8_t* rows = library()->plane(decoded, kChannelInterleaved, &stride);
    if (rows == nullptr) check({1, 0, "it gave no pixels"}, bytes);
    const auto row_bytes = static_cast<std::size_t>(pixels.size.width) * 4;
    pixels.rgba.resize(row_bytes * static_cast<std::size_t>(pixels.size.height));
    for (std::int64_t y = 0; y < pixels.size.height; ++y) {
      std::memcpy(pixels.rgba.data() + static_cast<std::size_t>(y) * row_bytes, rows + y * stride, row_bytes);
    }
    return pixels;
  }

 private:
  struct ContextFree {
    void operator()(Context* context) const { library()->context_free(context); }
  };
  struct HandleRelease {
    void operator()(Handle* handle) const { library()->handle_release(handle); }
  };
  struct PictureRelease {
    void operator()(Picture* picture) const { library()->picture_release(picture); }
  };

  void check(const HeifError& error, std::string_view bytes) const {
    if (error.code == 0) return;
    const std::string message = error.message != nullptr ? error.message : "no reason given";
    throw DataError(where_, "a HEIC picture that cannot be read: libheif says \"" + message + "\"",
                    "copy it again if it is damaged, or " + name_foreign_format(bytes).hint);
  }

  const std::string& where_;
  std::unique_ptr<Context, ContextFree> context_;
  std::unique_ptr<Handle, HandleRelease> handle_;
};

}  // namespace

bool is_heic(std::string_view bytes) {
  constexpr std::array kBrands = {"heic"sv, "heix"sv, "hevc"sv, "hevx"sv, "heim"sv, "heis"sv, "mif1"sv, "msf1"sv};
  if (bytes.size() < 12 || bytes.substr(4, 4) != "ftyp") return false;
  return std::find(kBrands.begin(), kBrands.end(), bytes.substr(8, 4)) != kBrands.end();
}

bool can_decode_heic() {
  return library() != nullptr;
}

bool is_heic_library(const std::string& name) {
  return open_library(name.c_str()) != nullptr;
}

HeicSize read_heic_size(std::string_view bytes, const std::string& where) {
  return HeicFile(bytes, where).size();
}

HeicPixels decode_heic(std::string_view bytes, const std::string& where) {
  return HeicFile(bytes, where).pixels(bytes);
}

}  // namespace sdtune::model
