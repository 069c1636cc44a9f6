# The service: docker build --tag vdsh . && docker run -p 8000:8000 -v "$PWD/notes:/stores/notes" \
#   -e VDSH_TOKEN=$(openssl rand -hex 16) vdsh
FROM python:3.11-slim AS build
WORKDIR /source
COPY pyproject.toml MANIFEST.in README.md CHANGELOG.md CITATION.cff constraints.txt ./
COPY src src
RUN python -m venv /opt/vdsh \
    && /opt/vdsh/bin/pip install --no-cache-dir -c constraints.txt '.[server,mcp]' \
    && find /opt/vdsh -name __pycache__ -prune -exec rm -rf {} +

FROM python:3.11-slim
COPY --from=build /opt/vdsh /opt/vdsh
# The number is that of nobody else; a mounted store must be readable to it, or give --user.
RUN useradd --uid 10001 --create-home vdsh && mkdir /stores && chown vdsh /stores
ENV PATH=/opt/vdsh/bin:$PATH PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 VDSH_HOME=/stores
USER vdsh
WORKDIR /stores
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["vdsh"]
CMD ["serve", "notes", "--host", "0.0.0.0"]
