#include "model/clip/clip_text_config.h"

#include "model/nn/model_limits.h"

namespace sdtune::model {
namespace {

constexpr const char* kModelType = "clip_text_model";
constexpr const char* kPlainClass = "CLIPTextModel";
constexpr const char* kProjectionClass = "CLIPTextModelWithProjection";

// What transformers' releases write into every config.json and what has no effect on this model: how it was made, how
// text generation would go, and which extra outputs to return.
constexpr const char* kBookkeeping[] = {"_name_or_path",
                                        "torch_dtype",
                                        "dtype",
                                        "transformers_version",
                                        "dropout",
                                        "return_dict",
                                        "output_hidden_states",
                                        "output_attentions",
                                        "use_cache",
                                        "torchscript",
                                        "use_bfloat16",
                                        "pruned_heads",
                                        "tie_word_embeddings",
                                        "is_decoder",
                                        "is_encoder_decoder",
                                        "add_cross_attention",
                                        "cross_attention_hidden_size",
                                        "tie_encoder_decoder",
                                        "chunk_size_feed_forward",
                                        "id2label",
                                        "label2id",
                                        "num_labels",
                                        "problem_type",
                                        "finetuning_task",
                                        "task_specific_params",
                                        "tokenizer_class",
                                        "prefix",
                                        "sep_token_id",
                                        "decoder_start_token_id",
                                        "max_length",
                                        "min_length",
                                        "do_sample",
                                        "early_stopping",
                                        "num_beams",
                                        "num_beam_groups",
                                        "diversity_penalty",
                                        "temperature",
                                        "top_k",
                                        "top_p",
                                        "typical_p",
                                        "repetition_penalty",
                                        "length_penalty",
                                        "no_repeat_ngram_size",
                                        "encoder_no_repeat_ngram_size",
                                        "bad_words_ids",
                                        "num_return_sequences",
                                        "output_scores",
                                        "return_dict_in_generate",
                                        "forced_bos_token_id",
                                        "forced_eos_token_id",
                                        "remove_invalid_values",
                                        "exponential_decay_length_penalty",
                                        "suppress_tokens",
                                        "begin_suppress_tokens",
                                        "tf_legacy_loss"};

bool read_with_projection(JsonObject& object) {
  if (object.raw("architectures").is_null()) return false;
  for (const std::string& name : object.strings("architectures")) {
    if (name == kProjectionClass) return true;
    if (name != kPlainClass) {
      object.fail("architectures",
                  "not supported (got " + name + "; allowed: " + kPlainClass + ", " + kProjectionClass + ")");
    }
  }
  return false;
}

Activation text_activation(JsonObject& object) {
  const std::string name = object.string("hidden_act", "quick_gelu");
  if (name != "quick_gelu" && name != "gelu") {
    object.fail("hidden_act", "not supported (got " + name + "; allowed: quick_gelu, gelu)");
  }
  return *activation_named(name);
}

void check_numbers(const JsonObject& object, const ClipTextConfig& config) {
  object.check_range("vocab_size", config.vocab_size, 1, kMaxVocabulary);
  object.check_range("hidden_size", config.hidden_size, 1, kMaxChannels);
  object.check_range("intermediate_size", config.intermediate_size, 1, kMaxWidth);
  object.check_range("num_hidden_layers", config.num_hidden_layers, 1, kMaxTextLayers);
  object.check_range("num_attention_heads", config.num_attention_heads, 1, kMaxChannels);
  object.check_range("max_position_embeddings", config.max_position_embeddings, 1, kMaxTextPositions);
  // Plain encoders carry the key without using it, and model_index.json may still ask for the projection.
  object.check_range("projection_dim", config.projection_dim, config.with_projection ? 1 : 0, kMaxChannels);
  if (config.hidden_size % config.num_attention_heads != 0) {
    object.fail("num_attention_heads", "hidden_size " + std::to_string(config.hidden_size) +
                                           " does not divide by it (got " + std::to_string(config.num_attention_heads) +
                                           ")");
  }
}

}  // namespace

ClipTextConfig ClipTextConfig::from_json(const Json& json, const std::string& where) {
  JsonObject object(json, where);
  object.require("model_type", kModelType);
  ClipTextConfig config;
  config.with_projection = read_with_projection(object);
  config.vocab_size = object.integer("vocab_size", config.vocab_size);
  config.hidden_size = object.integer("hidden_size", config.hidden_size);
  config.intermediate_size = object.integer("intermediate_size", config.intermediate_size);
  config.projection_dim = object.integer("projection_dim", config.projection_dim);
  config.num_hidden_layers = object.integer("num_hidden_layers", config.num_hidden_layers);
  config.num_attention_heads = object.integer("num_attention_heads", config.num_attention_heads);
  config.max_position_embeddings = object.integer("max_position_embeddings", config.max_position_embeddings);
  config.hidden_act = text_activation(object);
  config.layer_norm_eps = object.number("layer_norm_eps", config.layer_norm_eps);
  config.initializer_range = object.number("initializer_range", config.initializer_range);
  config.initializer_factor = object.number("initializer_factor", config.initializer_factor);
  config.pad_token_id = object.integer("pad_token_id", config.pad_token_id);
  config.bos_token_id = object.integer("bos_token_id", config.bos_token_id);
  config.eos_token_id = object.integer("eos_token_id", config.eos_token_id);
  object.require("attention_dropout", 0.0);
  for (const char* key : kBookkeeping) object.ignore(key);
  object.finish();
  check_numbers(object, config);
  return config;
}

Json ClipTextConfig::to_json() const {
  Json json;
  json["architectures"] = Json::array({with_projection ? kProjectionClass : kPlainClass});
  json["attention_dropout"] = 0.0;
  json["bos_token_id"] = bos_token_id;
  json["eos_token_id"] = eos_token_id;
  json["hidden_act"] = activation_name(hidden_act);
  json["hidden_size"] = hidden_size;
  json["initializer_factor"] = initializer_factor;
  json["initializer_range"] = initializer_range;
  json["intermediate_size"] = intermediate_size;
  json["layer_norm_eps"] = layer_norm_eps;
  json["max_position_embeddings"] = max_position_embeddings;
  json["model_type"] = kModelType;
  json["num_attention_heads"] = num_attention_heads;
  json["num_hidden_layers"] = num_hidden_layers;
  json["pad_token_id"] = pad_token_id;
  json["projection_dim"] = projection_dim;
  json["vocab_size"] = vocab_size;
  return json;
}

}  // namespace sdtune::model
