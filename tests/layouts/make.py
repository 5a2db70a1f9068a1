# Small files in the layouts of published graphs, written by NumPy, SciPy and PyArrow themselves.
import json, os, sys
import numpy as np, scipy, scipy.sparse as sp, pyarrow as pa, pyarrow.parquet as pq, gzip, networkx as nx
root = sys.argv[1]
def at(*parts):
    path = os.path.join(root, *parts); os.makedirs(os.path.dirname(path), exist_ok=True); return path
# 5 nodes: 0-1, 1-2, 2-3, and 4 alone; classes 2 0 1 0 2
row = np.array([0, 1, 1, 2, 2, 3]); col = np.array([1, 0, 2, 1, 3, 2])
label = np.array([2, 0, 1, 0, 2])
feat = (np.arange(15).reshape(5, 3) + 1) / 4
# DGL's Reddit: sp.save_npz of a COO matrix, np.savez of features, labels and roles
sp.save_npz(at('reddit', 'reddit_graph.npz'), sp.coo_matrix((np.ones(6, dtype=np.float32), (row.astype(np.int32), col.astype(np.int32))), shape=(5, 5)))
np.savez(at('reddit', 'reddit_data.npz'), feature=feat.astype(np.float32), label=label.astype(np.int64), node_ids=np.arange(5), node_types=np.array([1, 1, 2, 3, 3]))
# GraphSAINT: save_npz of a CSR matrix, feats.npy (float64), two JSON objects
sp.save_npz(at('graphsaint', 'adj_full.npz'), sp.csr_matrix((np.ones(6, dtype=bool), (row, col)), shape=(5, 5)))
np.save(at('graphsaint', 'feats.npy'), feat)
json.dump({str(v): int(c) for v, c in enumerate(label)}, open(at('graphsaint', 'class_map.json'), 'w'))
json.dump({'tr': [0, 1], 'va': [2], 'te': [3, 4]}, open(at('graphsaint', 'role.json'), 'w'))
# IGB: float32 features and labels, edges by rows
np.save(at('igb', 'paper', 'node_feat.npy'), feat.astype(np.float32))
np.save(at('igb', 'paper', 'node_label_19.npy'), label.astype(np.float32))
np.save(at('igb', 'paper__cites__paper', 'edge_index.npy'), np.stack([row, col], axis=1).astype(np.int32))
# OGB's binary form: np.savez_compressed, labels with gaps as decimals
np.savez_compressed(at('ogb', 'raw', 'data.npz'), edge_index=np.stack([row, col]), node_feat=feat.astype(np.float32), node_year=np.full((5, 1), 2015), num_nodes_list=np.array([5]), num_edges_list=np.array([6]))
np.savez_compressed(at('ogb', 'raw', 'node-label.npz'), node_label=np.array([[2], [0], [1], [np.nan], [2]], dtype=np.float32))
for name, nodes in [('train', [0, 1]), ('valid', [2]), ('test', [4])]:
    with gzip.open(at('ogb', 'split', 'time', name + '.csv.gz'), 'wt') as f: f.write(''.join(f'{v}\n' for v in nodes))
# MatrixMarket by scipy.io.mmwrite
from scipy.io import mmwrite
mmwrite(at('matrix-market', 'general.mtx'), sp.coo_matrix((np.ones(6), (row, col)), shape=(5, 5)), comment='six entries', symmetry='general')
mmwrite(at('matrix-market', 'symmetric.mtx'), sp.coo_matrix((np.array([1, 1, 1, 1, 1, 1]), (row, col)), shape=(5, 5)), field='pattern', symmetry='symmetric')
# Parquet tables
pq.write_table(pa.table({'src': pa.array(row * 10), 'dst': pa.array(col * 10)}), at('parquet', 'edges.parquet'))
pq.write_table(pa.table({'key': pa.array(np.arange(5) * 10), 'class': pa.array(['c', 'a', 'b', None, 'c']), 'x': pa.array(feat[:, 0]), 'y': pa.array(feat[:, 1].astype(np.float32)), 'v': pa.array([list(map(float, r)) for r in feat])}), at('parquet', 'nodes.parquet'))
# several labels a node, 3 of them: those of GraphSAINT's Yelp are lists
has = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 1], [1, 1, 1], [0, 0, 1]])
for name in ['adj_full.npz', 'feats.npy', 'role.json']:
    open(at('graphsaint-several', name), 'wb').write(open(at('graphsaint', name), 'rb').read())
json.dump({str(v): row.tolist() for v, row in enumerate(has)}, open(at('graphsaint-several', 'class_map.json'), 'w'))
# DGL's PPI: a graph each of training, validation and test nodes; 0-1 and 1-2, 3 with a loop, 4 alone
for name, nodes in [('train', [0, 1, 2]), ('valid', [3]), ('test', [4])]:
    graph = nx.DiGraph(); graph.add_nodes_from(range(len(nodes)))
    graph.add_edges_from([(0, 1), (1, 0), (1, 2), (2, 1)] if name == 'train' else [(0, 0)] if name == 'valid' else [])
    json.dump(nx.node_link_data(graph, edges='links'), open(at('ppi', name + '_graph.json'), 'w'))
    np.save(at('ppi', name + '_feats.npy'), feat[nodes])
    np.save(at('ppi', name + '_labels.npy'), has[nodes])
    np.save(at('ppi', name + '_graph_id.npy'), np.full(len(nodes), 1 + nodes[0]))
# OGB's ogbn-proteins: pandas writes no header; features of edges alone, and a species of each node
def rows(values, *parts):
    with gzip.open(at(*parts), 'wt') as f: f.write(''.join(','.join(str(x) for x in np.atleast_1d(row)) + '\n' for row in values))
rows([(0, 1), (1, 2), (2, 3)], 'ogb-several', 'raw', 'edge.csv.gz')
rows([[0.5, 1.0], [0.25, 0.0], [1.0, 0.5]], 'ogb-several', 'raw', 'edge-feat.csv.gz')
rows(has, 'ogb-several', 'raw', 'node-label.csv.gz')
rows([4932, 4932, 9606, 9606, 3702], 'ogb-several', 'raw', 'node_species.csv.gz')
rows([5], 'ogb-several', 'raw', 'num-node-list.csv.gz'); rows([3], 'ogb-several', 'raw', 'num-edge-list.csv.gz')
for name, nodes in [('train', [0, 1]), ('valid', [2]), ('test', [3, 4])]: rows(nodes, 'ogb-several', 'split', 'species', name + '.csv.gz')
# Parquet, a column of each label, of booleans and of numbers
pq.write_table(pa.table({'source': pa.array(row), 'target': pa.array(col)}), at('parquet-several', 'edges.parquet'))
pq.write_table(pa.table({'id': pa.array(np.arange(5)), 'a': pa.array(has[:, 0].astype(bool)), 'b': pa.array(has[:, 1]), 'c': pa.array(has[:, 2].astype(np.float32)), 'features': pa.array([list(map(float, r)) for r in feat])}), at('parquet-several', 'nodes.parquet'))
# the other byte order
np.save(at('big-endian', 'feats.npy'), feat.astype('>f4'))
print('numpy', np.__version__, 'scipy', scipy.__version__, 'pyarrow', pa.__version__, 'networkx', nx.__version__)
