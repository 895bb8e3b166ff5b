"""Names of the models; written by `python -m curvlab.config.schema`."""

from curvlab.models.cat import CAT as CAT
from curvlab.models.cat import NeighbourCAT as NeighbourCAT
from curvlab.models.curved_gcn import CurvedGCN as CurvedGCN
from curvlab.models.curved_gcn import HAT as HAT
from curvlab.models.curved_gcn import HGAT as HGAT
from curvlab.models.curved_gcn import HGCN as HGCN
from curvlab.models.curved_gcn import HGNN as HGNN
from curvlab.models.curved_gcn import KappaGCN as KappaGCN
from curvlab.models.curved_gcn import QGCN as QGCN
from curvlab.models.encoder import Encoder as Encoder
from curvlab.models.encoder import FlatEncoder as FlatEncoder
from curvlab.models.fpst import FPST as FPST
from curvlab.models.fpst import TokenGT as TokenGT
from curvlab.models.graph_network import ChebNet as ChebNet
from curvlab.models.graph_network import DropEdge as DropEdge
from curvlab.models.graph_network import GAT as GAT
from curvlab.models.graph_network import GCN as GCN
from curvlab.models.graph_network import GraphNetwork as GraphNetwork
from curvlab.models.graph_network import GraphSAGE as GraphSAGE
from curvlab.models.graph_network import MLP as MLP
from curvlab.models.graph_network import SGC as SGC
from curvlab.models.graph_network import SIGN as SIGN
from curvlab.models.graph_transformers import AttentionNetwork as AttentionNetwork
from curvlab.models.graph_transformers import FrontGCN as FrontGCN
from curvlab.models.graph_transformers import GraphGPS as GraphGPS
from curvlab.models.graph_transformers import GraphTrans as GraphTrans
from curvlab.models.graph_transformers import Graphormer as Graphormer
from curvlab.models.graph_transformers import NodeTransformer as NodeTransformer
from curvlab.models.hybonet import HyboNet as HyboNet
from curvlab.models.hybonet import LRN as LRN
from curvlab.models.hypformer import Hypformer as Hypformer
from curvlab.models.idgl import IDGL as IDGL
from curvlab.models.lds import LDS as LDS
from curvlab.models.nagphormer import NAGphormer as NAGphormer
from curvlab.models.nodeformer import NodeFormer as NodeFormer
from curvlab.models.polyformer import PolyAttn as PolyAttn
from curvlab.models.polyformer import PolyFormer as PolyFormer
from curvlab.models.polyformer import TokenMixer as TokenMixer
from curvlab.models.polyformer import UniFilter as UniFilter
from curvlab.models.sgformer import LRNSGFormer as LRNSGFormer
from curvlab.models.sgformer import SGFormer as SGFormer
from curvlab.models.sgformer import TwoBranches as TwoBranches
from curvlab.models.specformer import LargeSpecformer as LargeSpecformer
from curvlab.models.specformer import LearnedFilters as LearnedFilters
from curvlab.models.specformer import Specformer as Specformer
from curvlab.models.spectral import BernNet as BernNet
from curvlab.models.spectral import ChebNetII as ChebNetII
from curvlab.models.spectral import GPRGNN as GPRGNN
from curvlab.models.spectral import MLPThenFilter as MLPThenFilter
from curvlab.models.token_network import TokenNetwork as TokenNetwork
from curvlab.models.triple_scorer import DotProductScorer as DotProductScorer
from curvlab.models.triple_scorer import TripleScorer as TripleScorer
from curvlab.models.triples.ball import AttH as AttH
from curvlab.models.triples.ball import HyperbolicScorer as HyperbolicScorer
from curvlab.models.triples.ball import MuRP as MuRP
from curvlab.models.triples.ball import RotH as RotH
from curvlab.models.triples.flat import ComplEx as ComplEx
from curvlab.models.triples.flat import DistMult as DistMult
from curvlab.models.triples.flat import RotatE as RotatE
from curvlab.models.triples.flat import TransE as TransE
from curvlab.models.triples.floors import RelationFrequency as RelationFrequency
from curvlab.models.triples.floors import ReverseLookup as ReverseLookup

__all__ = [
    "AttH",
    "AttentionNetwork",
    "BernNet",
    "CAT",
    "ChebNet",
    "ChebNetII",
    "ComplEx",
    "CurvedGCN",
    "DistMult",
    "DotProductScorer",
    "DropEdge",
    "Encoder",
    "FPST",
    "FlatEncoder",
    "FrontGCN",
    "GAT",
    "GCN",
    "GPRGNN",
    "GraphGPS",
    "GraphNetwork",
    "GraphSAGE",
    "GraphTrans",
    "Graphormer",
    "HAT",
    "HGAT",
    "HGCN",
    "HGNN",
    "HyboNet",
    "HyperbolicScorer",
    "Hypformer",
    "IDGL",
    "KappaGCN",
    "LDS",
    "LRN",
    "LRNSGFormer",
    "LargeSpecformer",
    "LearnedFilters",
    "MLP",
    "MLPThenFilter",
    "MuRP",
    "NAGphormer",
    "NeighbourCAT",
    "NodeFormer",
    "NodeTransformer",
    "PolyAttn",
    "PolyFormer",
    "QGCN",
    "RelationFrequency",
    "ReverseLookup",
    "RotH",
    "RotatE",
    "SGC",
    "SGFormer",
    "SIGN",
    "Specformer",
    "TokenGT",
    "TokenMixer",
    "TokenNetwork",
    "TransE",
    "TripleScorer",
    "TwoBranches",
    "UniFilter",
]
