#include "train/data/face_finder.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/base/share_folder.h"
#include "model/image/resample.h"

namespace sdtune::train {

namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "sdtune-faces";
// In this order: the first has almost no false faces, the second finds more.
constexpr const char* kCascades[] = {"haarcascade_frontalface_alt.xml", "haarcascade_frontalface_alt2.xml"};
constexpr const char* kDebianFolder = "/usr/share/opencv4/haarcascades";
// px: detectors want faces of 40 px, and their time grows with the area.
constexpr std::int64_t kSmallestSearched = 256;  // the shorter side
constexpr std::int64_t kLargestSearched = 400;   // the longer side, unless the shorter one would be too short
constexpr timeval kPatience = {60, 0};           // s, for one picture

[[noreturn]] void fail(const std::string& why) {
  throw DataError(kProgram, why);
}

fs::path installed_cascade(const char* name) {
  const fs::path own = find_shared_file(fs::path("haarcascades") / name);
  std::error_code status;
  if (!own.empty()) return own;
  const fs::path system = fs::path(kDebianFolder) / name;
  return fs::is_regular_file(system, status) ? system : fs::path();
}

}  // namespace

std::vector<fs::path> face_models(const std::string& face_model) {
  if (!face_model.empty()) {
    const std::string ending = fs::path(face_model).extension().string();
    std::error_code status;
    if (!fs::is_regular_file(face_model, status)) {
      throw ConfigError("face_model", "is no file (got " + face_model + "; allowed: a cascade .xml or a YuNet .onnx)");
    }
    if (ending != ".xml" && ending != ".onnx") {
      throw ConfigError("face_model", "is of an unknown kind (got " + face_model + "; allowed: .xml, .onnx)");
    }
    return {face_model};
  }
  std::vector<fs::path> models;
  for (const char* name : kCascades) {
    const fs::path path = installed_cascade(name);
    if (path.empty()) throw DataError(name, "is not installed", "install the package opencv-data, or give face_model");
    models.push_back(path);
  }
  return models;
}

model::ImageBox head_around(const model::ImageBox& face, std::int64_t width, std::int64_t height) {
  constexpr double kUp = 0.6, kDown = 0.25, kSide = 0.35;
  const double left = std::max(0.0, face.left - kSide * face.width);
  const double top = std::max(0.0, face.top - kUp * face.height);
  const double right = std::min(static_cast<double>(width), face.left + (1 + kSide) * face.width);
  const double bottom = std::min(static_cast<double>(height), face.top + (1 + kDown) * face.height);
  return {left, top, right - left, bottom - top};
}

void check_recognizer(const fs::path& identity_model, const std::string& face_model) {
  std::error_code status;
  if (!fs::is_regular_file(identity_model, status) || identity_model.extension() != ".onnx") {
    throw ConfigError("identity_model",
                      "is no face recognition network (got " + identity_model.string() + "; allowed: an .onnx file)");
  }
  try {
    FaceFinder(face_models(face_model), identity_model);
  } catch (const DataError& error) {
    throw ConfigError("identity_model", error.problems().front().what, error.problems().front().hint);
  }
}

Image searched_picture(const Image& picture) {
  const std::int64_t shorter = std::min(picture.width, picture.height);
  const std::int64_t longer = std::max(picture.width, picture.height);
  if (shorter < kSmallestSearched) {
    const std::int64_t times = (kSmallestSearched + shorter - 1) / shorter;
    return model::resized(picture, times * picture.width, times * picture.height, model::Filter::kBicubic);
  }
  const std::int64_t side = std::max(kLargestSearched, longer * kSmallestSearched / shorter);
  if (longer <= side) return picture;
  return model::resized(picture, picture.width * side / longer, picture.height * side / longer,
                        model::Filter::kBilinear);
}

FaceFinder::FaceFinder(const std::vector<fs::path>& models, const fs::path& recognizer) {
  const fs::path program = find_companion_program(kProgram);
  if (program.empty()) fail("is not installed beside sdtune: this build has no face detection");
  std::vector<std::string> words = {program.string()};
  if (!recognizer.empty()) {
    words.emplace_back("--recognizer");
    words.push_back(recognizer.string());
  }
  for (const fs::path& model : models) words.push_back(model.string());
  start(words);
  try {
    expect_ready();
  } catch (const DataError&) {
    stop();
    throw;
  }
}

FaceFinder::~FaceFinder() {
  stop();
}

void FaceFinder::start(const std::vector<std::string>& words) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail(std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int status = posix_spawn(&process_, words.front().c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  socket_ = ends[0];
  if (status != 0) {
    process_ = -1;
    close(socket_);
    fail(std::string("cannot be started: ") + std::strerror(status));
  }
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
}

void FaceFinder::stop() {
  close(socket_);
  kill(process_, SIGTERM);  // it holds nothing that could be lost
  waitpid(process_, nullptr, 0);
}

void FaceFinder::expect_ready() {
  const Json greeting = Json::parse(read_line(), nullptr, /*allow_exceptions=*/false);
  if (greeting.is_object() && greeting.contains("ready")) return;
  fail(greeting.is_object() && greeting.contains("error") ? greeting["error"].get<std::string>() : "cannot be used");
}

void FaceFinder::send(const void* bytes, std::size_t count) {
  const auto* at = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t sent = ::send(socket_, at, count, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;  // it has ended: what it said last is read, and names the cause
    at += sent;
    count -= static_cast<std::size_t>(sent);
  }
}

std::string FaceFinder::read_line() {
  for (;;) {
    const std::size_t end = received_.find('\n');
    if (end != std::string::npos) {
      const std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    char block[4096];
    const ssize_t count = recv(socket_, block, sizeof(block), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("does not answer");
    if (count == 0) fail("has ended without an answer");
    received_.append(block, static_cast<std::size_t>(count));
  }
}

FaceLook FaceFinder::look(const Image& picture) {
  const std::lock_guard lock(mutex_);
  const std::string header = Json{{"width", picture.width}, {"height", picture.height}}.dump() + "\n";
  send(header.data(), header.size());
  send(picture.rgb.data(), picture.rgb.size());
  const Json answer = Json::parse(read_line(), nullptr, /*allow_exceptions=*/false);
  if (answer.is_object() && answer.contains("error")) fail(answer["error"].get<std::string>());
  if (!answer.is_object() || !answer.contains("faces")) fail("gave an answer that is none");
  FaceLook look;
  for (const Json& face : answer["faces"]) {
    look.faces.push_back({face.at("left"), face.at("top"), face.at("width"), face.at("height")});
  }
  if (answer.contains("embedding")) look.identity = answer["embedding"].get<std::vector<float>>();
  return look;
}

}  // namespace sdtune::train
