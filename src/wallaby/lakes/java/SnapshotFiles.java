package wallaby;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/**
 * The files of one snapshot of a table, as somebody else has chosen them. Nothing is listed: Spark, and so Wallaby, reads
 * these files and no others, and takes the values of partition columns from here, not from paths.
 *
 * Spark compiles this file in the driver with Janino; see PlanWriter.java for what that means.
 */
public class SnapshotFiles implements FileIndex {
    /** Between two words of the text that says which files there are. */
    private static final String BETWEEN = "\0";
    /** How a value begins that is not NULL. */
    private static final String SOME = "=";
    private static final long BLOCK_BYTES = 128L << 20;

    private final Path table;
    private final String text;
    private final StructType partitions;
    private final List directories;
    private final List files;
    private final long bytes;

    /** The text has an address and a size for each file, and the values of its partition columns. */
    public SnapshotFiles(String table, String text, StructType partitions) {
        this.table = path(table);
        this.text = text;
        this.partitions = partitions;
        this.directories = new ArrayList();
        this.files = new ArrayList();
        StructField[] columns = partitions.fields();
        String[] words = text.isEmpty() ? new String[0] : text.split(BETWEEN, -1);
        long total = 0;
        for (int at = 0; at < words.length; at += 2 + columns.length) {
            long size = Long.parseLong(words[at + 1]);
            Object[] values = new Object[columns.length];
            for (int column = 0; column < columns.length; column++) {
                values[column] = value(words[at + 2 + column], columns[column].dataType());
            }
            FileStatus file = new FileStatus(size, false, 1, BLOCK_BYTES, 0, path(words[at]));
            List one = new ArrayList();
            one.add(new FileStatusWithMetadata(file, (scala.collection.immutable.Map) Map$.MODULE$.empty()));
            directories.add(new PartitionDirectory(new GenericInternalRow(values), seq(one)));
            files.add(file);
            total += size;
        }
        this.bytes = total;
    }

    /** A DataFrame over these files: the columns that they have, then those of the partitions. */
    public static Dataset table(SparkSession session, String table, String text, String columns, String partitions) {
        StructType partitionSchema = (StructType) DataType.fromJson(partitions);
        SnapshotFiles index = new SnapshotFiles(table, text, partitionSchema);
        return session.baseRelationToDataFrame(new HadoopFsRelation(
            index, partitionSchema, (StructType) DataType.fromJson(columns), Option.empty(), new ParquetFileFormat(),
            (scala.collection.immutable.Map) Map$.MODULE$.empty(), session));
    }

    /** A path of the operating system; nothing in it is decoded. */
    private static Path path(String name) {
        return new Path("file", null, name);
    }

    private static Object value(String word, DataType type) {
        if (!word.startsWith(SOME)) {
            return null;
        }
        String said = word.substring(SOME.length());
        String name = type.typeName();
        if (type instanceof DecimalType) {
            DecimalType decimal = (DecimalType) type;
            scala.math.BigDecimal number = new scala.math.BigDecimal(new BigDecimal(said).setScale(decimal.scale()));
            return new Decimal().set(number, decimal.precision(), decimal.scale());
        }
        if (name.equals("string")) {
            return UTF8String.fromString(said);
        }
        if (name.equals("binary")) {
            return Base64.getDecoder().decode(said);
        }
        if (name.equals("boolean")) {
            return Boolean.valueOf(said);
        }
        if (name.equals("byte")) {
            return Byte.valueOf(said);
        }
        if (name.equals("short")) {
            return Short.valueOf(said);
        }
        if (name.equals("integer") || name.equals("date")) {
            return Integer.valueOf(said);
        }
        if (name.equals("long") || name.equals("timestamp") || name.equals("timestamp_ntz")) {
            return Long.valueOf(said);
        }
        if (name.equals("float")) {
            return Float.valueOf(said);
        }
        if (name.equals("double")) {
            return Double.valueOf(said);
        }
        throw new IllegalArgumentException("a partition column of type " + name);
    }

    public Seq rootPaths() {
        List roots = new ArrayList();
        roots.add(table);
        return seq(roots);
    }

    /** Spark does not look again at conditions on partition columns, so they hold for every file of the answer. */
    public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
        List found = new ArrayList(directories);
        scala.collection.Iterator filters = partitionFilters.iterator();
        while (filters.hasNext()) {
            Expression filter = (Expression) filters.next();
            Seq columns = columns(filter);
            if (columns == null) {
                continue;
            }
            BasePredicate predicate = Predicate$.MODULE$.create(filter, columns);
            predicate.initialize(0);
            List left = new ArrayList();
            for (int at = 0; at < found.size(); at++) {
                if (predicate.eval(((PartitionDirectory) found.get(at)).values())) {
                    left.add(found.get(at));
                }
            }
            found = left;
        }
        return seq(found);
    }

    /** The partition columns in order, as a filter refers to them; null if it refers to others, too. */
    private Seq columns(Expression filter) {
        StructField[] fields = partitions.fields();
        Attribute[] found = new Attribute[fields.length];
        scala.collection.Iterator used = filter.references().iterator();
        while (used.hasNext()) {
            Attribute attribute = (Attribute) used.next();
            int at = 0;
            while (at < fields.length && !fields[at].name().equals(attribute.name())) {
                at++;
            }
            if (at == fields.length) {
                return null;
            }
            found[at] = attribute;
        }
        List columns = new ArrayList();
        for (int at = 0; at < fields.length; at++) {
            columns.add(found[at] != null ? found[at] : new AttributeReference(
                fields[at].name(), fields[at].dataType(), true, Metadata.empty(), NamedExpression$.MODULE$.newExprId(),
                (Seq) Nil$.MODULE$));
        }
        return seq(columns);
    }

    public String[] inputFiles() {
        String[] names = new String[files.size()];
        for (int at = 0; at < names.length; at++) {
            names[at] = ((FileStatus) files.get(at)).getPath().toUri().toString();
        }
        return names;
    }

    /** A snapshot never changes. */
    public void refresh() {
    }

    public long sizeInBytes() {
        return bytes;
    }

    public StructType partitionSchema() {
        return partitions;
    }

    public Option metadataOpsTimeNs() {
        return Option.empty();
    }

    public boolean equals(Object other) {
        return other instanceof SnapshotFiles && ((SnapshotFiles) other).text.equals(text)
            && ((SnapshotFiles) other).partitions.equals(partitions) && ((SnapshotFiles) other).table.equals(table);
    }

    public int hashCode() {
        return text.hashCode();
    }

    public String toString() {
        return "SnapshotFiles(" + files.size() + " files of " + table + ")";
    }

    private static Seq seq(List list) {
        return scala.jdk.javaapi.CollectionConverters.asScala(list).toSeq();
    }
}
