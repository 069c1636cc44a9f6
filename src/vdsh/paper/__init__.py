"""The wing for researchers: corpora, the paper's protocol, its tables and figures.

Nothing that a store, a service or a model needs is here. `datasets` has the corpora, `protocol`
measures codes by labels, `cells` trains and measures one method on one corpus, and `reproduction`
makes the tables and figures from finished cells.
"""
