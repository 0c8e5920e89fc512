// Conditions that engines' rules are made of. Inside of the table (EngineRules.cpp).
#pragma once

#include "tools/checkpoint/EngineRules.h"

namespace moejit::checkpoint::meets {

#define MOEJIT_PREDICATE(name) std::optional<std::string> name(const EngineCase &given)
// Of the checkpoint.
MOEJIT_PREDICATE(always);
MOEJIT_PREDICATE(isNotFp8Method);
MOEJIT_PREDICATE(isMxMethod);
MOEJIT_PREDICATE(hasBias);
MOEJIT_PREDICATE(isLatent);
MOEJIT_PREDICATE(hasNoGate);
MOEJIT_PREDICATE(hasOtherActivation);
MOEJIT_PREDICATE(lacksActivationScheme);
MOEJIT_PREDICATE(lacksBlockSize);
// Of the scheme.
MOEJIT_PREDICATE(isStatic);
MOEJIT_PREDICATE(isTensorStatic);
MOEJIT_PREDICATE(isTensorDynamic);
MOEJIT_PREDICATE(isTensorGated);
MOEJIT_PREDICATE(isTensorStaticAlone);
MOEJIT_PREDICATE(isUpOfTensor);
MOEJIT_PREDICATE(isSquareBlockDynamic); ///< 64x64 or 128x128
MOEJIT_PREDICATE(isBlockStatic);
MOEJIT_PREDICATE(isNotBlock);
MOEJIT_PREDICATE(isNotBlock128);
MOEJIT_PREDICATE(isNotBlock128OrRow);
MOEJIT_PREDICATE(isNotSquare128);
MOEJIT_PREDICATE(isMx);
MOEJIT_PREDICATE(isMxBelow100);
MOEJIT_PREDICATE(isMxFrom100);
MOEJIT_PREDICATE(isE5M2);
MOEJIT_PREDICATE(isOtherBlock);
MOEJIT_PREDICATE(isPowerScale);
MOEJIT_PREDICATE(isChannelTokenStatic);
MOEJIT_PREDICATE(isMixed);
MOEJIT_PREDICATE(isCompressedBlockTensorStatic);
MOEJIT_PREDICATE(isCompressedBlockStatic);
MOEJIT_PREDICATE(isFp8BlockStatic);
MOEJIT_PREDICATE(isCompressedNoGate);
MOEJIT_PREDICATE(isCompressedBlockOther); ///< activations in other groups than block_k
MOEJIT_PREDICATE(isNotCompressed);
MOEJIT_PREDICATE(isModelOptOther);
MOEJIT_PREDICATE(isNotForTriton);
MOEJIT_PREDICATE(isNotForCutlass);
MOEJIT_PREDICATE(isNotForDeepGemm); ///< 128x128, and MXFP8 from SM100
MOEJIT_PREDICATE(isNotForFlashInferCutlass);
MOEJIT_PREDICATE(isNotForFlashInferTrtllm);
MOEJIT_PREDICATE(isNotChannelToken);
MOEJIT_PREDICATE(isBelow89);
MOEJIT_PREDICATE(isBelow90);
MOEJIT_PREDICATE(isBelow100);
MOEJIT_PREDICATE(isNot100);
MOEJIT_PREDICATE(isNot90Or100);
MOEJIT_PREDICATE(isFloatScaleOn100);
MOEJIT_PREDICATE(isBlockOn100);
// Of extents.
MOEJIT_PREDICATE(isBlockRagged);
MOEJIT_PREDICATE(isColumnsRagged);
MOEJIT_PREDICATE(hasSeam);
MOEJIT_PREDICATE(isSplitInBlock);
MOEJIT_PREDICATE(partBreaksRows);
MOEJIT_PREDICATE(compressedPartBreaksRows);
MOEJIT_PREDICATE(partBreaksColumns);
MOEJIT_PREDICATE(isNotOf16);
MOEJIT_PREDICATE(nIsNotOf8);
MOEJIT_PREDICATE(scaleRowsDiffer);
MOEJIT_PREDICATE(isNotRefinable);
MOEJIT_PREDICATE(isRefinableFp8);
MOEJIT_PREDICATE(isSmallForDeepGemm);
#undef MOEJIT_PREDICATE

} // namespace moejit::checkpoint::meets
