// What the classifier is trained on: to name every visible attribute, to estimate the numbers, and to place images of
// one person near each other.
#pragma once

#include <torch/types.h>

#include "train/portrait/classifier/classifier_labels.h"
#include "train/portrait/classifier/classifier_network.h"

namespace sdtune::train::classifier {

// Sum over the heads of the mean cross entropy of the images that show them; a head that none shows adds 0. Scalar.
torch::Tensor class_loss(const torch::Tensor& logits, const torch::Tensor& classes);

// Sum over the numbers of the mean Huber loss of the images that show them. Scalar.
torch::Tensor number_loss(const torch::Tensor& numbers, const torch::Tensor& truth);

// Supervised contrastive loss (Khosla et al. 2020, eq. 2, "outside"): each image must find the other images of its
// person among all others of the batch. embedding [B, D] of length 1, people [B] int64. An image that is alone of its
// person only serves as an example of another person. Scalar; 0 when all are alone.
torch::Tensor identity_loss(const torch::Tensor& embedding, const torch::Tensor& people);

// Mean Huber loss of the landmarks' places [B, L, 2], summed over the two coordinates, plus the mean cross entropy of
// whether each can be seen; 0 without landmarks. Scalar.
torch::Tensor landmark_loss(const ClassifierOutput& output, const Labels& labels);

// Where a mark is: of the images that show it, the mean over its seen points of the cross entropy of the point's place
// among all places of its class's map, summed over the marks; 0 where the output has no maps of marks. Scalar.
torch::Tensor mark_place_loss(const ClassifierOutput& output, const Labels& labels);

// The weighted sum of the five.
torch::Tensor classifier_loss(const ClassifierOutput& output, const Labels& labels);

}  // namespace sdtune::train::classifier
