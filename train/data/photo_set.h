// The photos of all subjects of a run, with kohya's folders, repeats and trigger words.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "train/config/concept_options.h"
#include "train/data/photo_folder.h"

namespace sdtune::train {

// Subject by subject the photos of its folder, and then those of each of its subfolders named as kohya's trainer has
// them: "10_sks person" shows its photos 10 times as often, with "sks person" as the prompt of those without a caption.
// Captions have their [trigger] replaced (trigger_word says by what). Throws DataError for a folder that is not there,
// or without any image. `visitor` is called for each.
PhotoFolder scan_photos(const std::vector<ConceptOptions>& concepts, const DataOptions& options,
                        const PhotoVisitor& visitor = {});

// The photos of validation_data_dir and of its subfolders of that kind, each once, with the captions that training
// would give them: as photos of the first subject. With several, [trigger] stays as it is where there is no
// trigger_word. Throws as scan_photos does, and ConfigError for subjects that are wrong.
PhotoFolder scan_held_out(const DataOptions& options, const std::filesystem::path& folder,
                          const PhotoVisitor& visitor = {});

// Whether the caption of any photo of that subject has these words, one after the other; true of no words.
bool is_said_of(const std::vector<Photo>& photos, std::size_t subject, std::string_view words);

// Forgets where the faces are unless crops are to show them: what changes nothing must not make another run.
void drop_unused_faces(std::vector<Photo>& photos, const DataOptions& options);

// What a subfolder's name says, unset for any other folder.
struct FolderName {
  std::int64_t repeats = 1;
  std::string prompt;
};
std::optional<FolderName> kohya_folder(const std::string& name);

}  // namespace sdtune::train
