package wallaby;

import jakarta.servlet.http.HttpServletRequest;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.apache.spark.SparkContext;
import org.apache.spark.ui.SparkUI;
import org.apache.spark.ui.SparkUITab;
import org.apache.spark.ui.UIUtils;
import org.apache.spark.ui.WebUIPage;
import scala.None$;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction0;
import scala.xml.Unparsed;

/**
 * A tab of Spark's UI that leads to the live page. It names the page's address and not its token: whoever may look at
 * Spark's UI, on whichever host, need not be one of those for whom the page is.
 *
 * Spark compiles this file in the driver with Janino; see PlanWriter.java for what that means.
 */
public class LiveTab extends SparkUITab {
    private final SparkUI ui;

    /** `text` is what the tab shows, as HTML. */
    public LiveTab(SparkContext context, String text) {
        super((SparkUI) context.ui().get(), "wallaby");
        ui = (SparkUI) context.ui().get();
        attachPage(new Page(this, text));
    }

    /** Show the tab. */
    public void show() {
        ui.attachTab(this);
    }

    /** Take it away. */
    public void remove() {
        ui.detachTab(this);
    }

    /** The only page of the tab. */
    public static class Page extends WebUIPage {
        private final LiveTab tab;
        private final String text;

        public Page(LiveTab tab, String text) {
            super("");
            this.tab = tab;
            this.text = text;
        }

        public Seq render(HttpServletRequest request) {
            Method[] methods = UIUtils.class.getMethods();
            for (int at = 0; at < methods.length; at++) {
                if (methods[at].getName().equals("headerSparkPage")) {
                    return around(methods[at], request);
                }
            }
            return content();
        }

        /** The text with Spark's header, whose method has more switches in later versions: all of them are off. */
        private Seq around(Method header, HttpServletRequest request) {
            Class[] types = header.getParameterTypes();
            Object[] given = new Object[types.length];
            for (int at = 0; at < types.length; at++) {
                given[at] = types[at] == boolean.class ? Boolean.FALSE
                    : types[at] == String.class ? "Wallaby"
                    : types[at] == Option.class ? None$.MODULE$
                    : types[at].isInstance(request) ? request
                    : types[at].isInstance(tab) ? (Object) tab
                    : new Content(this);
            }
            try {
                return (Seq) header.invoke(null, given);
            } catch (IllegalAccessException unknown) {
                return content();
            } catch (InvocationTargetException unknown) {
                return content();
            }
        }

        /** The text alone. */
        public Seq content() {
            return Nil$.MODULE$.$colon$colon(new Unparsed(text));
        }
    }

    /** Spark's header asks for what is below it. */
    public static class Content extends AbstractFunction0 {
        private final Page page;

        public Content(Page page) {
            this.page = page;
        }

        public Object apply() {
            return page.content();
        }
    }
}
