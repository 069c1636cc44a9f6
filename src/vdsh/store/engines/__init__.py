"""Where documents and codes can lie: a room for each engine, all behind `vdsh.store.engine`."""
