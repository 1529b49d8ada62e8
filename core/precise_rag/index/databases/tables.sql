-- A collection {c}, with vectors of the type {kind} and of {d} numbers.
CREATE TABLE {c}_settings (one int PRIMARY KEY CHECK (one = 1), settings text NOT NULL);
CREATE TABLE {c}_documents (
    key bigserial PRIMARY KEY, id text COLLATE "C" UNIQUE NOT NULL, digest text NOT NULL,
    size int NOT NULL, metadata text NOT NULL, fields jsonb NOT NULL);
CREATE INDEX ON {c}_documents (size);
CREATE INDEX ON {c}_documents USING gin (fields jsonb_path_ops);
CREATE TABLE {c}_sentences (
    key bigserial PRIMARY KEY, document bigint NOT NULL REFERENCES {c}_documents ON DELETE CASCADE,
    place int NOT NULL, start int NOT NULL, stop int NOT NULL, n_tokens int NOT NULL,
    passage_start int NOT NULL, passage_end int NOT NULL, lottery int NOT NULL, text text NOT NULL,
    above text NOT NULL, terms int[] NOT NULL, vector {kind}({d}) NOT NULL, counted bytea NOT NULL);
CREATE INDEX ON {c}_sentences (document, place);
CREATE INDEX ON {c}_sentences (lottery);
CREATE TABLE {c}_postings (
    term int, weight real NOT NULL, sentence bigint, document bigint NOT NULL,
    PRIMARY KEY (term, sentence) INCLUDE (weight, document));
