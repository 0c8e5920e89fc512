// Owns nothing: gathers the dialect's definitions for TableGen.
include "compiler/dialect/ptx/PtxInstructions.td"
include "compiler/dialect/ptx/PtxMemory.td"
include "compiler/dialect/ptx/PtxStructure.td"
