#include "model/pipeline/prompt_syntax.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <system_error>
#include <utility>

#include "model/base/error.h"

namespace sdtune::model {
namespace {

constexpr double kRoundWeight = 1.1;
constexpr double kSquareWeight = 1 / 1.1;
constexpr std::string_view kSpecial = "\\()[]:";
constexpr std::string_view kDigits = "0123456789.";
constexpr std::string_view kSpaces = " \t\r\n\f\v";
constexpr std::string_view kBreak = "BREAK";

bool is_word_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || byte == '_' || (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= 'a' && byte <= 'z');
}

std::size_t after_spaces(std::string_view text, std::size_t at) {
  const std::size_t found = text.find_first_not_of(kSpaces, at);
  return found == std::string_view::npos ? text.size() : found;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t last = text.find_last_not_of(kSpaces);
  if (last == std::string_view::npos) return {};
  return text.substr(0, last + 1).substr(after_spaces(text, 0));
}

double weight_of(std::string_view number) {
  const std::string_view digits = number.starts_with('+') ? number.substr(1) : number;
  double weight = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), weight);
  if (fault != std::errc() || end != digits.data() + digits.size() || !std::isfinite(weight)) {
    throw ConfigError("prompt", "a weight is no number (got " + std::string(number) + "; allowed: as in (word:1.2))",
                      "write \\( and \\) for parentheses that mean nothing");
  }
  return weight;
}

class EmphasisParser {
 public:
  explicit EmphasisParser(std::string_view text) : text_(text) {}

  std::vector<PromptPiece> parse() {
    while (at_ < text_.size()) read_next();
    for (const std::size_t first : round_) multiply(first, kRoundWeight);  // never closed: to the end
    for (const Square& open : square_) multiply(open.first_piece, kSquareWeight);
    return joined();
  }

 private:
  struct Square {
    std::size_t first_piece;
    std::size_t text_begin;  // behind the bracket
  };

  void read_next() {
    switch (text_[at_]) {
      case '\\':
        read_escape();
        return;
      case '(':
        round_.push_back(pieces_.size());
        ++at_;
        return;
      case '[':
        square_.push_back({pieces_.size(), ++at_});
        return;
      case ':':
        read_colon();
        return;
      case ')':
        close_round(kRoundWeight, 1);
        return;
      case ']':
        close_square();
        return;
      default:
        read_text();
    }
  }

  // A backslash makes a bracket or another backslash a letter; before anything else it vanishes.
  void read_escape() {
    const bool escapes = at_ + 1 < text_.size() && std::string_view("()[]\\").find(text_[at_ + 1]) != std::string::npos;
    pieces_.push_back({escapes ? std::string(1, text_[at_ + 1]) : std::string()});
    at_ += escapes ? 2 : 1;
  }

  // ":1.2)" ends a group; any other colon is a letter.
  void read_colon() {
    const std::size_t begin = after_spaces(text_, at_ + 1);
    std::size_t digits = begin;
    if (digits < text_.size() && (text_[digits] == '+' || text_[digits] == '-')) ++digits;
    const std::size_t end = std::min(text_.find_first_not_of(kDigits, digits), text_.size());
    const std::size_t bracket = after_spaces(text_, end);
    const bool is_weight = end > digits && bracket < text_.size() && text_[bracket] == ')';
    const std::size_t size = is_weight ? bracket + 1 - at_ : 1;
    if (is_weight && !round_.empty()) {
      close_round(weight_of(text_.substr(begin, end - begin)), size);
    } else {
      take_letters(size);
    }
  }

  void close_round(double weight, std::size_t size) {
    if (round_.empty()) return take_letters(size);
    multiply(round_.back(), weight);
    round_.pop_back();
    at_ += size;
  }

  void close_square() {
    if (square_.empty()) return take_letters(1);
    refuse_editing(text_.substr(square_.back().text_begin, at_ - square_.back().text_begin));
    multiply(square_.back().first_piece, kSquareWeight);
    square_.pop_back();
    ++at_;
  }

  static void refuse_editing(std::string_view inside) {
    const std::size_t colon = inside.rfind(':');
    const std::string_view when = colon == std::string_view::npos ? "" : trimmed(inside.substr(colon + 1));
    const bool has_time = !when.empty() && when.find_first_not_of(kDigits) == std::string_view::npos;
    if (!has_time && inside.find('|') == std::string_view::npos) return;
    throw ConfigError("prompt",
                      "prompts that change between steps are not supported (got [" + std::string(inside) +
                          "]; allowed in brackets: a text that shall count less)",
                      "write \\[ and \\] for brackets that mean nothing");
  }

  void take_letters(std::size_t size) {
    pieces_.push_back({std::string(text_.substr(at_, size))});
    at_ += size;
  }

  // Up to the next special character, parted at each BREAK that stands as a word of its own.
  void read_text() {
    const std::size_t end = std::min(text_.find_first_of(kSpecial, at_), text_.size());
    const std::string_view run = text_.substr(at_, end - at_);
    at_ = end;
    std::size_t begin = 0;
    for (std::size_t found = run.find(kBreak); found != std::string_view::npos; found = run.find(kBreak, found + 1)) {
      const std::size_t behind = found + kBreak.size();
      if ((found > 0 && is_word_byte(run[found - 1])) || (behind < run.size() && is_word_byte(run[behind]))) continue;
      pieces_.push_back({std::string(trimmed_end(run.substr(begin, found - begin)))});
      pieces_.push_back({"", 1.0, true});
      begin = after_spaces(run, behind);
    }
    pieces_.push_back({std::string(run.substr(begin))});
  }

  static std::string_view trimmed_end(std::string_view text) {
    return text.substr(0, text.find_last_not_of(kSpaces) + 1);  // npos + 1 is 0
  }

  void multiply(std::size_t first, double weight) {
    for (std::size_t i = first; i < pieces_.size(); ++i) pieces_[i].weight *= weight;
  }

  std::vector<PromptPiece> joined() {
    std::vector<PromptPiece> result;
    for (PromptPiece& piece : pieces_) {
      const bool same =
          !result.empty() && !piece.is_break && !result.back().is_break && result.back().weight == piece.weight;
      if (same) {
        result.back().text += piece.text;
      } else {
        result.push_back(std::move(piece));
      }
    }
    if (result.empty()) result.emplace_back();
    return result;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<PromptPiece> pieces_;
  std::vector<std::size_t> round_;  // the first piece of each open (
  std::vector<Square> square_;
};

}  // namespace

PromptSyntax parse_prompt_syntax(const std::string& name, const std::string& where) {
  if (name == "plain") return PromptSyntax::kPlain;
  if (name == "weighted") return PromptSyntax::kWeighted;
  throw ConfigError(where, "unknown (got " + name + "; allowed: plain, weighted)");
}

std::vector<PromptPiece> parse_weighted_prompt(std::string_view prompt) {
  return EmphasisParser(prompt).parse();
}

}  // namespace sdtune::model
