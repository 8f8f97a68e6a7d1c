# recrawl and all it needs to crawl, to share a PostgreSQL store and to show what it did.
# docs/how-to/run-in-containers.md tells how to use it; compose.yaml runs it beside PostgreSQL.

FROM python:3.13-slim AS build
COPY constraints.txt pyproject.toml README.md LICENSE /source/
COPY src /source/src
RUN python -m venv /opt/recrawl \
    && /opt/recrawl/bin/pip install --no-cache-dir --constraint /source/constraints.txt \
       "/source[crawl,columns,plot,postgres,predict,show,speed]"

FROM python:3.13-slim
RUN useradd --uid 1000 --create-home recrawl \
    && install --directory --owner=recrawl --group=recrawl /archive
COPY --from=build /opt/recrawl /opt/recrawl
# Machine code is kept where the user may write, so that only the first start has to make it.
ENV PATH=/opt/recrawl/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    NUMBA_CACHE_DIR=/home/recrawl/.cache/numba \
    RECRAWL_WORKSPACE=/archive
USER recrawl
WORKDIR /archive
VOLUME /archive
EXPOSE 8080 8081
# As Ctrl-C: what is under way is finished.
STOPSIGNAL SIGINT
HEALTHCHECK --interval=1m --timeout=30s --start-period=1m CMD ["recrawl", "status"]
ENTRYPOINT ["recrawl"]
CMD ["--help"]
